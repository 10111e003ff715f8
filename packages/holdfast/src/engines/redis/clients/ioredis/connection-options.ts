// Options of the connections that we open. The client must not give up by itself: the core has its
// own deadline. Unanswered commands are sent again, because ioredis would otherwise leave them
// without an answer. failoverDetector is off, because it may leave listeners behind; with Sentinels
// our connections follow the user's client instead.
export const CONNECTION_OPTIONS = {
  lazyConnect: false,
  maxRetriesPerRequest: null,
  autoResendUnfulfilledCommands: true,
  failoverDetector: false,
};
