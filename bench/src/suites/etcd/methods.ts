/** Methods of etcd's services, as its metrics name them. All that a lock can need. */
export const METHODS = {
  sends: [
    ...["Range", "Put", "DeleteRange", "Txn", "Watch", "Lock", "Unlock"],
    ...["LeaseGrant", "LeaseRevoke", "LeaseKeepAlive", "LeaseTimeToLive"],
  ],
  keepsAlive: ["LeaseKeepAlive"],
} as const;
