// Administration in parts. A part that the caller has no role for is not offered; the server refuses it anyway.
import { pageTexts } from "../../app/page-texts";
import { hasRole, useWho, type Who } from "../../app/who";
import { Access } from "./admin-access";
import "./admin.css";
import { Applications } from "./admin-applications";
import { AuditLog } from "./admin-audit";
import { Deletion } from "./admin-deletion";
import { IngestErrors } from "./admin-errors";
import { Limits } from "./admin-limits";
import { RecentQueries } from "./admin-queries";
import { Retention } from "./admin-retention";
import { ScrapeTargets } from "./admin-scrape";
import { AdminState } from "./admin-state";
import { Failure } from "../notice";
import { Parts, shownPart } from "../parts";

export interface PartProps {
  who: Who;
  mayChange: boolean;
}

const PARTS: Record<string, (props: PartProps) => preact.JSX.Element> = {
  state: AdminState,
  applications: Applications,
  limits: Limits,
  retention: Retention,
  deletion: Deletion,
  errors: IngestErrors,
  scrape: ScrapeTargets,
  queries: RecentQueries,
  access: Access,
  audit: AuditLog,
};
const FOR_ADMINS = ["queries", "audit"];
// Whoever has no role may still change the own password.
const FOR_ALL = ["access"];

function mayShow(who: Who, part: string): boolean {
  return FOR_ALL.includes(part) || hasRole(who, FOR_ADMINS.includes(part) ? "admin" : "viewer");
}

export function Admin() {
  const words = pageTexts.value.admin;
  const answer = useWho();
  const who = answer.value;
  if (!who) {
    return (
      <section aria-busy={answer.isLoading}>
        <h1>{words.title}</h1>
        <Failure error={answer.error} />
      </section>
    );
  }
  const names = Object.keys(PARTS).filter((part) => mayShow(who, part));
  const name = shownPart(names);
  const Shown = PARTS[name];
  return (
    <section class="admin">
      <h1>{words.title}</h1>
      <Parts label={words.title} parts={names.map((part) => [part, words.parts[part]])} />
      <Shown key={name} who={who} mayChange={hasRole(who, "admin")} />
    </section>
  );
}
