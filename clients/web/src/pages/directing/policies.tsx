// Policies: those of all services, or one with its rules, a dry run, what it started, and its versions.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { formatTime } from "../../app/question";
import { rulesOf, type StoredPolicy } from "./policy";
import { formatCount } from "../../units";
import { change, param } from "../../url";
import { Failure } from "../notice";
import { OnePolicy } from "./one-policy";
import { ruleName, stateOf } from "./policy-words";
import { ServiceField } from "./service-field";
import { Rows } from "../rows";
import "./directing.css";

export interface GotPolicy {
  policy?: StoredPolicy;
  status?: { triggeredCount?: number }[];
}

export function Policies() {
  const service = param("service");
  return service === "" ? <AllPolicies /> : <OnePolicy key={service} service={service} />;
}

function OpenPolicy() {
  const words = directingTexts.value.policies;
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault();
        change({ service: String(new FormData(event.currentTarget).get("service")).trim() });
      }}
    >
      <ServiceField class="wide" required aria-label={words.open} placeholder={words.open} />
      <button type="submit">{words.openButton}</button>
    </form>
  );
}

function AllPolicies() {
  const words = directingTexts.value;
  const listed = useAnswer("policies", (abort) =>
    call<{ policies?: GotPolicy[] }>("hearth.v1.PolicyService/ListPolicies", {}, abort),
  );
  const policies = listed.value?.policies ?? [];
  return (
    <section aria-busy={listed.isLoading}>
      <div class="headline">
        <h1>{words.policies.title}</h1>
        <span class="muted">{words.policies.about}</span>
      </div>
      <OpenPolicy />
      <Failure error={listed.error} />
      {listed.value && policies.length === 0 && <p class="muted">{words.policies.none}</p>}
      {policies.length > 0 && (
        <Rows heads={[words.service, words.policies.state, words.policies.rules, { number: words.policies.triggered }, { number: words.policies.version }, words.policies.changed]}>
          {policies.map(({ policy = {}, status = [] }) => (
            <tr key={policy.service}>
              <th scope="row" class="named">
                <button type="button" class="plain" onClick={() => change({ service: policy.service ?? "" })}>
                  {policy.service}
                </button>
              </th>
              <td>{stateOf(policy)}</td>
              <td class="named">{rulesOf(policy).map(ruleName).join(", ")}</td>
              <td class="number">{formatCount(status.reduce((sum, each) => sum + (each.triggeredCount ?? 0), 0))}</td>
              <td class="number">{policy.version}</td>
              <td>
                {formatTime(Number(policy.modifiedMs ?? 0))} <span class="muted">{policy.modifiedBy}</span>
              </td>
            </tr>
          ))}
        </Rows>
      )}
    </section>
  );
}
