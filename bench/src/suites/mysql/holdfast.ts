import { mysqlEngine } from "holdfast/mysql";
import mysql from "mysql2/promise";
import type { Contender } from "../../measuring/suite.js";
import { ourSubject } from "../our-subject.js";

export const holdfast: Contender = {
  id: "holdfast",
  name: "holdfast",
  ours: true,
  reach: "host",
  open: async ({ url, ttlMs }) =>
    ourSubject(mysqlEngine({ client: mysql.createPool(url) }), { ttlMs }),
};
