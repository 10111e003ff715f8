import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
export function sqliteFromUrl(_url: EngineUrl): Engine {
  throw new Error("x");
}
