import type { AcquireOptions, Engine } from "holdfast";
import type { Contender, OpenContext, Traces } from "../measuring/suite.js";
import { ourSubject } from "./our-subject.js";

/** An engine of ours, on a server. */
export function holdfast(
  id: string,
  name: string,
  traces: Traces,
  engineOn: (context: OpenContext) => Engine | Promise<Engine>,
  options: AcquireOptions = {},
): Contender {
  return {
    id,
    name,
    ours: true,
    reach: "host",
    traces,
    open: async (context) =>
      ourSubject(await engineOn(context), { ttlMs: context.ttlMs, ...options }),
  };
}
