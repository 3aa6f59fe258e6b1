// The policy of one service. Changes stand in the address as edits of single rules, and are laid over what is stored.
import { useMemo, useState } from "preact/hooks";
import { ApiError, call, refreshes } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { applyEdits, editsBetween, formatEdit, parseEdit, placeOfError, ruleKey, rulesOf, targetsOf, type Rule } from "./policy";
import { change, formatList, param, parseList } from "../../url";
import { Failure, Notes } from "../notice";
import type { GotPolicy } from "./policies";
import { PolicyPast, useStarted } from "./policy-past";
import { PolicyRules } from "./policy-rules";
import { PolicyTrial } from "./policy-trial";
import { stateOf } from "./policy-words";

const SERVICE = "hearth.v1.PolicyService/";

// A service without a policy has an empty one, of version 0.
async function getPolicy(service: string, abort: AbortSignal): Promise<GotPolicy> {
  try {
    return await call<GotPolicy>(SERVICE + "GetPolicy", { service }, abort);
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_found") {
      return {};
    }
    throw error;
  }
}

export function OnePolicy({ service }: { service: string }) {
  const words = directingTexts.value.policies;
  const got = useAnswer(service, (abort) => getPolicy(service, abort));
  const started = useStarted(service);
  const stored = got.value?.policy ?? {};
  const storedRules = rulesOf(stored);
  const edits = parseList(param("edits")).flatMap((text) => parseEdit(text) ?? []);
  const rules = applyEdits(storedRules, edits);
  const isObserving = param("mode") === "" ? Boolean(stored.isObserving) : param("mode") === "observing";
  const isEdited = editsBetween(storedRules, rules).length > 0 || isObserving !== Boolean(stored.isObserving);
  const chosen = rules.find((rule) => ruleKey(rule) === param("rule")) ?? rules[0];

  // A rule while it is typed or dragged, before it is written to the address.
  const [held, setHeld] = useState<Rule>();
  const shown = held ? rules.map((rule) => (ruleKey(rule) === ruleKey(held) ? held : rule)) : rules;
  const [outcome, setOutcome] = useState<{ error?: Error; saved?: string; wasChanged?: boolean }>({});

  const message = (extra: object) => ({
    policy: { service, targets: targetsOf(rules, stored) },
    observe: isObserving,
    ...extra,
  });
  const checked = useAnswer(got.value && isEdited ? JSON.stringify(message({})) : null, (abort) =>
    call<{ warnings?: string[] }>(SERVICE + "SetPolicy", message({ validateOnly: true }), abort),
  );
  const complaint = isEdited && checked.error ? checked.error : undefined;
  const placed = complaint ? placeOfError(complaint.message) : null;

  const setRules = (next: Rule[], more = {}) => {
    setHeld(undefined);
    setOutcome({});
    change({ edits: formatList(editsBetween(storedRules, next).map(formatEdit)), ...more });
  };
  const setRule = (rule: Rule) => setRules(applyEdits(rules, [rule]));
  // This part does not depend on edits, so it is not drawn again while the threshold is dragged.
  const past = useMemo(
    () => (
      <PolicyPast
        service={service}
        kinds={[...new Set(storedRules.map(({ kind }) => kind))]}
        started={started}
        onRestore={(version) => setRules(rulesOf(version))}
      />
    ),
    [got.value, started],
  );
  const save = async () => {
    try {
      const who = await call<{ name?: string }>("hearth.v1.AccessService/WhoAmI", {});
      const set = message({ expectedVersion: stored.version ?? "0" });
      Object.assign(set.policy, { modifiedBy: who.name ?? "" });
      const { policy } = await call<GotPolicy>(SERVICE + "SetPolicy", set);
      setOutcome({ saved: policy?.version ?? "" });
      change({ edits: "", mode: "" });
    } catch (error) {
      const wasChanged = error instanceof ApiError && error.code === "aborted";
      setOutcome(wasChanged ? { wasChanged } : { error: error as Error });
    }
    refreshes.value++;
  };
  return (
    <section class="policy">
      <div class="headline">
        <h1>{words.one(service)}</h1>
        {got.value && <span>{stateOf(stored)}</span>}
        {stored.version && (
          <span class="muted">
            {words.version} {stored.version}
          </span>
        )}
        <button type="button" onClick={() => change({ service: "", edits: "", mode: "", rule: "" })}>
          {pageTexts.value.back}
        </button>
        <span class="links">
          <PageLink page="tasks" to={{ only: service }}>
            {directingTexts.value.links.tasks}
          </PageLink>
          <PageLink page="network" to={{ service }}>
            {directingTexts.value.links.network}
          </PageLink>
        </span>
      </div>
      <Failure error={got.error ?? outcome.error} />
      {got.value && (
        <>
          <PolicyRules rules={shown} edits={edits} chosen={chosen} error={placed} onHold={setHeld} onRule={setRule} onRules={setRules} />
          {outcome.wasChanged && (
            <p class="note" role="alert">
              {words.changedMeanwhile}
            </p>
          )}
          {outcome.saved && <p role="status">{words.saved(outcome.saved)}</p>}
          {!placed && <Failure error={complaint} />}
          <Notes notes={isEdited ? (checked.value?.warnings ?? []) : []} />
          <div class="tools">
            <label>
              {words.mode}{" "}
              <select value={isObserving ? "observing" : "armed"} onChange={(event) => change({ mode: event.currentTarget.value })}>
                {Object.entries(words.modes).map(([mode, name]) => (
                  <option key={mode} value={mode}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <button type="button" class="primary" disabled={!isEdited || complaint !== undefined} onClick={() => void save()}>
              {words.save}
            </button>
            {isEdited && (
              <button type="button" onClick={() => change({ edits: "", mode: "" })}>
                {words.discard}
              </button>
            )}
          </div>
          {chosen && (
            <PolicyTrial
              key={ruleKey(chosen)}
              service={service}
              rule={shown.find((rule) => ruleKey(rule) === ruleKey(chosen))!}
              targets={targetsOf(shown, stored)}
              started={started.value?.tasks ?? []}
              onHold={setHeld}
              onRule={setRule}
            />
          )}
          {past}
        </>
      )}
    </section>
  );
}
