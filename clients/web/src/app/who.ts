// Who looks at the page, and which roles they have. The server decides on every call; this only keeps the page from
// offering what would be refused.
import { call } from "../api/connect";
import { useAnswer, type Answer } from "../api/use-answer";

export interface Grant {
  id?: number;
  subject?: string;
  tenant?: string;
  role?: string;
  selector?: string;
}

export interface Who {
  subject?: string;
  name?: string;
  grants?: Grant[];
}

export const ROLES = ["ingest", "viewer", "profiler", "editor", "admin"];
const EVERY_TENANT = "*";

export function useWho(): Answer<Who> {
  return useAnswer("who", (abort) => call<Who>("hearth.v1.AccessService/WhoAmI", {}, abort));
}

export function isAnonymous(who?: Who): boolean {
  return who?.subject === "anonymous";
}

// Whether some grant has the role or a higher one. Where nobody is asked for a name, everybody may do everything.
export function hasRole(who: Who | undefined, role: string): boolean {
  const least = ROLES.indexOf(role);
  return isAnonymous(who) || (who?.grants ?? []).some((grant) => ROLES.indexOf(grant.role ?? "") >= least);
}

export function administersServer(who?: Who): boolean {
  const isWhole = (grant: Grant) => grant.tenant === EVERY_TENANT && grant.role === "admin" && !grant.selector;
  return isAnonymous(who) || (who?.grants ?? []).some(isWhole);
}
