// A field for the name of a service, with those that agents report to choose from.
import type { InputHTMLAttributes } from "preact";
import { useId } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";

export function ServiceField(props: InputHTMLAttributes) {
  const id = useId();
  const services = useAnswer("services", (abort) =>
    call<{ services?: { service: string }[] }>("hearth.v1.ProcessService/ListServices", {}, abort),
  );
  return (
    <>
      <input name="service" list={id} spellcheck={false} autocomplete="off" {...props} />
      <datalist id={id}>
        {(services.value?.services ?? []).map(({ service }) => (
          <option key={service} value={service} />
        ))}
      </datalist>
    </>
  );
}
