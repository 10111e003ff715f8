import { altered, type WrongEngine } from "./altered.js";
import type { Overlay } from "./memory-harness.js";

/** An engine that stores less than the name it was given. */
function folding(fold: (name: string) => string): Overlay {
  return (inner) =>
    altered(inner, {
      tryAcquire: (claim, call) =>
        inner.tryAcquire({ ...claim, resource: fold(claim.resource) }, call),
      renew: (refs, call) =>
        inner.renew(
          refs.map((ref) => ({ ...ref, resource: fold(ref.resource) })),
          call,
        ),
      release: (refs, call) =>
        inner.release(
          refs.map((ref) => ({ ...ref, resource: fold(ref.resource) })),
          call,
        ),
      check: (seq, call) => inner.check({ ...seq, resource: fold(seq.resource) }, call),
      inspect: async (resource, call) => ({
        ...(await inner.inspect(fold(resource), call)),
        resource,
      }),
    });
}

function lax(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const nameDefects: readonly WrongEngine[] = [
  { defect: "names are folded by case", law: "L9.1", overlay: folding((n) => n.toLowerCase()) },
  { defect: "names are trimmed", law: "L9.1", overlay: folding((n) => n.trim() || n) },
  { defect: "names end at a colon", law: "L9.1", overlay: folding((n) => n.split(":")[0] || n) },
  { defect: "names are normalised", law: "L9.1", overlay: folding((n) => n.normalize("NFC")) },
  { defect: "names are cut at 255", law: "L9.1", overlay: folding((n) => n.slice(0, 255)) },
  { defect: "names are percent-decoded", law: "L9.1", overlay: folding(lax) },
  { defect: "what is in braces is the name", law: "L9.1", overlay: folding(hashTag) },
  {
    defect: "labels are trimmed",
    law: "L9.4",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: (claim, call) =>
          inner.tryAcquire({ ...claim, label: claim.label.trim() }, call),
      }),
  },
  {
    defect: "a listing repeats the last name of each page",
    law: "L9.6",
    overlay: (inner) =>
      altered(inner, {
        async list(filter, call) {
          const page = await inner.list(filter, call);
          const cursor = page.cursor === null ? null : page.cursor.slice(0, -1);
          return filter.max > 1 ? { ...page, cursor } : page;
        },
      }),
  },
  {
    defect: "a listing ends after its first page",
    law: "L9.6",
    overlay: (inner) =>
      altered(inner, {
        list: async (filter, call) => ({ ...(await inner.list(filter, call)), cursor: null }),
      }),
  },
  {
    defect: "globs ignore upper and lower case",
    law: "L9.7",
    overlay: (inner) =>
      altered(inner, {
        async list(filter, call) {
          const lower = await inner.list({ ...filter, match: filter.match.toLowerCase() }, call);
          return lower;
        },
      }),
  },
  {
    defect: "globs also read LIKE's special characters",
    law: "L9.7",
    overlay: (inner) =>
      altered(inner, {
        list: (filter, call) =>
          inner.list({ ...filter, match: filter.match.replaceAll("_", "?") }, call),
      }),
  },
];

/** The part of a name that Redis Cluster reads as the hash tag of a key. */
function hashTag(name: string): string {
  return /\{([^}]+)\}/.exec(name)?.[1] ?? name;
}
