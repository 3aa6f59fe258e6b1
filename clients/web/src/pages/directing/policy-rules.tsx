// The rules of a policy as fields. An error of the server stands at the field that it is about.
import { useState } from "preact/hooks";
import { directingTexts } from "../../app/directing-texts";
import { firstRule, isHttp, KINDS, MONITORS, removal, ruleKey, type Edit, type Field, type Rule } from "./policy";
import { change } from "../../url";
import { ruleName } from "./policy-words";

interface PlacedError {
  key: string;
  field: Field;
  text: string;
}

interface Props {
  rules: Rule[];
  edits: Edit[];
  chosen?: Rule;
  error: PlacedError | null;
  onHold(rule: Rule): void;
  onRule(rule: Rule): void;
  onRules(rules: Rule[], more: Record<string, string>): void;
}

function urisOf(text: string): Pick<Rule, "paths" | "regex"> {
  const typed = text.trim();
  return typed.startsWith("~") ? { paths: [], regex: typed.slice(1).trim() } : { paths: typed.split(/\s+/).filter(Boolean), regex: "" };
}

function RuleRow({ rule, isChosen, isEdited, error, onHold, onRule }: {
  rule: Rule;
  isChosen: boolean;
  isEdited: boolean;
  error: PlacedError | null;
  onHold(rule: Rule): void;
  onRule(rule: Rule): void;
}) {
  const words = directingTexts.value;
  const name = ruleName(rule);
  const errorId = `error ${ruleKey(rule)}`.replace(/ /g, "-");
  const wrong = (field: Field) => ({ "aria-invalid": error?.field === field, "aria-describedby": error?.field === field ? errorId : undefined });
  const number = (field: "threshold" | "count" | "period", unit = "") => {
    const read = (event: { currentTarget: HTMLInputElement }) => ({ ...rule, [field]: Math.round(event.currentTarget.valueAsNumber) || 0 });
    return (
      <label>
        {words.policies[field]}
        <span>
          <input
            type="number"
            min={1}
            value={rule[field]}
            {...wrong(field)}
            onInput={(event) => onHold(read(event))}
            onChange={(event) => onRule(read(event))}
          />{" "}
          {unit}
        </span>
      </label>
    );
  };
  return (
    <li class="rule" aria-current={isChosen ? "true" : undefined}>
      <button
        type="button"
        class="plain"
        aria-pressed={isChosen}
        title={words.policies.tryRule(name)}
        onClick={() => change({ rule: ruleKey(rule) })}
      >
        {name}
      </button>
      {number("threshold", words.units[rule.monitor])}
      {number("count")}
      {number("period")}
      {isHttp(rule.monitor) && (
        <label class="uris">
          {words.policies.uris}
          <input
            class="code"
            value={rule.regex === "" ? rule.paths.join(" ") : "~" + rule.regex}
            placeholder={words.policies.allUris}
            spellcheck={false}
            {...wrong("uris")}
            onChange={(event) => onRule({ ...rule, ...urisOf(event.currentTarget.value) })}
          />
        </label>
      )}
      <span class="muted">{isEdited && words.policies.edited}</span>
      <button type="button" aria-label={words.policies.removeRule(name)} onClick={() => onRule(removal(rule))}>
        {words.policies.remove}
      </button>
      {error && (
        <p class="error" id={errorId} role="alert">
          {error.text}
        </p>
      )}
    </li>
  );
}

function AddRule({ rules, onRules }: Pick<Props, "rules" | "onRules">) {
  const words = directingTexts.value;
  const has = new Set(rules.map(ruleKey));
  const missing = KINDS.flatMap((kind) => MONITORS.map((monitor) => firstRule(kind, monitor))).filter((rule) => !has.has(ruleKey(rule)));
  const [key, setKey] = useState("");
  const rule = missing.find((each) => ruleKey(each) === key) ?? missing[0];
  if (!rule) {
    return null;
  }
  return (
    <p class="tools">
      <select class="full" aria-label={words.policies.add} value={ruleKey(rule)} onChange={(event) => setKey(event.currentTarget.value)}>
        {missing.map((each) => (
          <option key={ruleKey(each)} value={ruleKey(each)}>
            {ruleName(each)}
          </option>
        ))}
      </select>
      <button type="button" onClick={() => onRules([...rules, rule], { rule: ruleKey(rule) })}>
        {words.policies.add}
      </button>
    </p>
  );
}

export function PolicyRules({ rules, edits, chosen, error, onHold, onRule, onRules }: Props) {
  const words = directingTexts.value.policies;
  const edited = new Set(edits.map(ruleKey));
  return (
    <>
      {rules.length === 0 && <p class="muted">{words.noRules}</p>}
      <ul class="rule-list" aria-label={words.rules}>
        {rules.map((rule) => (
          <RuleRow
            key={ruleKey(rule)}
            rule={rule}
            isChosen={chosen !== undefined && ruleKey(rule) === ruleKey(chosen)}
            isEdited={edited.has(ruleKey(rule))}
            error={error?.key === ruleKey(rule) ? error : null}
            onHold={onHold}
            onRule={onRule}
          />
        ))}
      </ul>
      <AddRule rules={rules} onRules={onRules} />
    </>
  );
}
