// What no trait can say: where to connect, who shares the locks, when to take an engine, and whether it
// needs `init`. The tables list the engines in this order.
import type { EngineTraits } from "holdfast";

export type Language = "en" | "zh";
export type Words = Readonly<Record<Language, string>>;

export interface EngineWords {
  readonly url: string;
  readonly sharedBy: Words;
  readonly takeIt: Words;
  /** Whether it needs `init` once. */
  readonly init: boolean;
}

export const ENGINES: Readonly<Record<string, EngineWords>> = {
  redis: {
    url: "redis://127.0.0.1:6379",
    sharedBy: { en: "all clients of one Redis", zh: "同一个 Redis 的所有客户端" },
    takeIt: {
      en: "you run Redis, and you accept that a failover may lose a lock",
      zh: "已有 Redis，并接受故障切换可能丢失锁",
    },
    init: false,
  },
  postgres: {
    url: "postgres://app@127.0.0.1/database",
    sharedBy: { en: "all clients of one PostgreSQL", zh: "同一个 PostgreSQL 的所有客户端" },
    takeIt: {
      en: "your data is in PostgreSQL: your own transaction can check the lock",
      zh: "数据在 PostgreSQL 中：可以在自己的事务里核对锁",
    },
    init: true,
  },
  mysql: {
    url: "mysql://app@127.0.0.1/database",
    sharedBy: {
      en: "all clients of one MySQL or MariaDB",
      zh: "同一个 MySQL 或 MariaDB 的所有客户端",
    },
    takeIt: {
      en: "your data is in MySQL or MariaDB: your own transaction can check the lock",
      zh: "数据在 MySQL 或 MariaDB 中：可以在自己的事务里核对锁",
    },
    init: true,
  },
  sqlite: {
    url: "sqlite:locks.db",
    sharedBy: { en: "processes of one host", zh: "同一台主机上的进程" },
    takeIt: {
      en: "everything runs on one host: there is no server to set up",
      zh: "一切都在一台主机上运行：不需要服务器，也不需要准备",
    },
    init: false,
  },
  etcd: {
    url: "etcd://127.0.0.1:2379",
    sharedBy: { en: "all clients of one etcd cluster", zh: "同一个 etcd 集群的所有客户端" },
    takeIt: {
      en: "you need consensus, and you run etcd: one failed server stops nothing",
      zh: "需要共识，并且已有 etcd：单台服务器故障不影响使用",
    },
    init: false,
  },
  zookeeper: {
    url: "zookeeper://h1,h2,h3",
    sharedBy: { en: "all clients of one ensemble", zh: "同一个 ZooKeeper 集群的所有客户端" },
    takeIt: {
      en: "you need consensus, and you run ZooKeeper: one failed server stops nothing",
      zh: "需要共识，并且已有 ZooKeeper：单台服务器故障不影响使用",
    },
    init: false,
  },
  quorum: {
    url: "redlock://h1,h2,h3,h4,h5",
    sharedBy: {
      en: "all clients of the same independent Redis servers",
      zh: "同一组独立 Redis 服务器的所有客户端",
    },
    takeIt: {
      en: "no single Redis may stop the locks or forget them, and you run neither etcd nor ZooKeeper; waiters have no queue",
      zh: "单台 Redis 停机或丢失数据不得影响锁，又没有 etcd 和 ZooKeeper；等待者不排队",
    },
    init: true,
  },
  memory: {
    url: "memory:",
    sharedBy: {
      en: "connections on one `MemoryStore`; each `memory:` has its own",
      zh: "使用同一个 `MemoryStore` 的连接；每个 `memory:` 各有一个",
    },
    takeIt: {
      en: "you test your code, or the program is one process",
      zh: "测试代码，或者程序只有一个进程",
    },
    init: false,
  },
};

export const HEADINGS: Readonly<Record<Language, readonly string[]>> = {
  en: ["take", "when", "connect to", "tokens keep rising across", "before the first use"],
  zh: ["引擎", "适用情况", "连接地址", "token 在何种情况下仍然递增", "首次使用前"],
};

export const FENCING: Readonly<Record<EngineTraits["fencing"], Words>> = {
  process: { en: "the life of the process", zh: "进程存活期间" },
  durable: { en: "restarts, `kill -9`, power cuts", zh: "重启、`kill -9`、断电" },
  clock: {
    en: "restarts and loss of data, unless the server's clock was set back",
    zh: "重启和数据丢失，只要服务器时钟没有回拨",
  },
};

/** The same for docs/promises.md, at more length. */
export const PROMISED: Readonly<Record<EngineTraits["fencing"], string>> = {
  process: "releases, expiries and reconnects, while the process lives",
  durable: "restarts, `kill -9` and power cuts too",
  clock: "a loss of the backend's data too, unless its clock was set back",
};

export function wordsOf(engine: string): EngineWords {
  const words = ENGINES[engine];
  if (words === undefined)
    throw new Error(`add the words for "${engine}" to repo-tests/src/engines/engine-words.ts`);
  return words;
}
