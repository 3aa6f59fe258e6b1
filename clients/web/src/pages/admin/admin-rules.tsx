// Rules that switch profiling for all series of a selector. The last one that matches, by name, counts.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import type { PartProps } from "./admin";
import { Failure } from "../notice";
import { Confirm, useSending } from "../sending";

const SERVICE = "hearth.v1.ApplicationService/";

interface Rule {
  name: string;
  labelSelector?: string;
  profiling?: string;
  updatedBy?: string;
  updatedAtMs?: string;
}

export function Rules({ who, mayChange }: PartProps) {
  const words = pageTexts.value.admin;
  const answer = useAnswer("application rules", (abort) => call<{ rules?: Rule[] }>(SERVICE + "ListRules", {}, abort));
  const { error, isSending, send } = useSending();
  const rules = answer.value?.rules ?? [];
  const add = async (form: HTMLFormElement) => {
    const fields = Object.fromEntries(new FormData(form));
    if (await send(SERVICE + "SetRule", { ...fields, updatedBy: who.name })) {
      form.reset();
    }
  };
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.rules}</h2>
      <p class="muted">{words.rulesHint}</p>
      <Failure error={answer.error ?? error} />
      {answer.value && rules.length === 0 && <p class="muted">{words.noRules}</p>}
      {rules.length > 0 && (
        <div class="rows">
          <table class="narrow">
            <thead>
              <tr>
                <th scope="col">{words.name}</th>
                <th scope="col">{words.selector}</th>
                <th scope="col">{words.profiling}</th>
                <th scope="col">{words.changed}</th>
                {mayChange && <td />}
              </tr>
            </thead>
            <tbody>
              {rules.map(({ name, labelSelector, profiling = "", updatedBy, updatedAtMs }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td class="code">{labelSelector}</td>
                  <td>{words.profilings[profiling] ?? profiling}</td>
                  <td>{words.changedBy(updatedBy || "anonymous", formatTime(Number(updatedAtMs ?? 0)))}</td>
                  {mayChange && (
                    <td class="actions">
                      <Confirm label={words.delete} of={name} onConfirm={() => void send(SERVICE + "DeleteRule", { name })} />
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {mayChange && (
        <form
          class="inline"
          onSubmit={(event) => {
            event.preventDefault();
            void add(event.currentTarget);
          }}
        >
          <input name="name" required maxLength={128} aria-label={words.name} placeholder={words.ruleName} />
          <input name="labelSelector" required class="code wide" aria-label={words.selector} placeholder={'{env="dev"}'} />
          <select name="profiling" aria-label={words.profiling}>
            <option value="PROFILING_OFF">{words.profilings.PROFILING_OFF}</option>
            <option value="PROFILING_ON">{words.profilings.PROFILING_ON}</option>
          </select>
          <button type="submit" disabled={isSending}>
            {words.setRule}
          </button>
        </form>
      )}
    </section>
  );
}
