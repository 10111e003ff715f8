// What the statements of each database do, one by one, on the real database.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { FencedOutError } from "holdfast";
import { type Database, mariadb, postgres, type Session, sqlite } from "./databases.fixture.js";
import { held } from "./held.fixture.js";

const LOST = /registration of token \d+ is lost/;
const STALE = /newer holder/;

async function rejects(promise: Promise<void>, message: RegExp): Promise<void> {
  await assert.rejects(promise, (error: Error) => {
    assert.ok(error instanceof FencedOutError, String(error));
    assert.match(error.message, message);
    return true;
  });
}

for (const [name, start] of Object.entries({ postgres, mariadb, sqlite })) {
  describe(name, () => {
    let database: Database;
    let ours: Session;
    let theirs: Session;
    before(async () => {
      database = await start();
      [ours, theirs] = [await database.open(), await database.open()];
    });
    after(() => database.stop());

    test("registering raises the mark or refuses, and may be repeated", async () => {
      await ours.register(held("a", 99n));
      await ours.register(held("a", 99n));
      await theirs.register(held("a", 100n));
      await rejects(ours.register(held("a", 99n)), STALE);
      await theirs.check(held("a", 100n));
    });

    test("registering sends nothing for a lease that is not held", async () => {
      const lost = new Error("not held");
      const lease = { ...held("never", 1n), assertHeld: () => assert.fail(lost) };
      await assert.rejects(ours.register(lease), lost);
      await rejects(ours.check(held("never", 1n)), LOST);
    });

    test("checking refuses a smaller token, and a greater one too, which it never raises", async () => {
      await ours.register(held("b", 5n));
      await ours.check(held("b", 5n));
      await rejects(ours.check(held("b", 4n)), STALE);
      await rejects(ours.check(held("b", 6n)), LOST);
      await ours.check(held("b", 5n));
    });

    test("tokens above 2^53 are told apart", async () => {
      const token = 2n ** 62n + 1n;
      await ours.register(held("c", token));
      await ours.check(held("c", token));
      await rejects(ours.check(held("c", token - 1n)), STALE);
      await rejects(ours.register(held("c", token - 1n)), STALE);
      await rejects(ours.check(held("c", token + 1n)), LOST);
    });

    test("names that differ in case, blanks or accents have marks of their own", async () => {
      const names = ["n", "N", "n ", " n", "ñ", "n\u0303", "n'", 'n"', "n\\", "锁"];
      for (const [i, resource] of names.entries()) {
        await ours.register(held(resource, BigInt(100 - i)));
      }
      for (const [i, resource] of names.entries()) {
        await ours.check(held(resource, BigInt(100 - i)));
      }
    });

    test("a name beyond ASCII has one mark, whatever the character set of the connection", async () => {
      for (const resource of ["café", "锁", "锋"]) {
        await ours.register(held(resource, 333n));
        await theirs.register(held(resource, 334n));
        await rejects(ours.check(held(resource, 333n)), STALE);
        await theirs.check(held(resource, 334n));
      }
    });
  });
}
