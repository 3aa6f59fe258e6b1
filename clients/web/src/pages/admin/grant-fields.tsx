// What a grant consists of, in the forms for tokens and for subjects.
import { pageTexts } from "../../app/page-texts";
import { ROLES, type Grant, type Who } from "../../app/who";

// The tenant of a server without several is called anonymous.
export function likelyTenant(who: Who): string {
  return (who.grants ?? []).map((grant) => grant.tenant ?? "").find((tenant) => tenant !== "" && tenant !== "*") ?? "anonymous";
}

export function readGrant(fields: FormData): Grant {
  const [role, tenant, selector] = ["role", "tenant", "selector"].map((name) => String(fields.get(name) ?? "").trim());
  return { role, tenant, selector };
}

export function GrantFields({ who }: { who: Who }) {
  const words = pageTexts.value.admin;
  return (
    <>
      <select name="role" aria-label={words.role}>
        {ROLES.map((role) => (
          <option key={role} value={role}>
            {role}: {words.roles[role]}
          </option>
        ))}
      </select>
      <input name="tenant" required aria-label={words.tenantOrAll} placeholder={words.tenantOrAll} defaultValue={likelyTenant(who)} />
      <input name="selector" class="code wide" aria-label={words.narrowedTo} placeholder={words.narrowedTo} spellcheck={false} />
    </>
  );
}

export function GrantText({ grant }: { grant: Grant }) {
  const words = pageTexts.value.admin;
  return (
    <>
      {words.roleIn(grant.role ?? "", grant.tenant === "*" ? words.everyTenant : (grant.tenant ?? ""))}
      {grant.selector && <span class="code"> {grant.selector}</span>}
    </>
  );
}
