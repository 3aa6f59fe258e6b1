// The background work and the tables of the whole database, which two parts of administration show.
import { call } from "../api/connect";
import { useAnswer, type Answer } from "../api/use-answer";

export interface Status {
  hasBuilder?: boolean;
  builderHost?: string;
  lagMs?: string;
  lateRows?: string;
  tombstones?: string;
  oldestProfileMs?: string;
  restricted?: boolean; // only hasBuilder and lagMs are told
  tables?: { table: string; bytes?: string }[];
}

export function useStatus(): Answer<Status> {
  return useAnswer("status", (abort) => call<Status>("hearth.v1.AdminService/Status", {}, abort));
}
