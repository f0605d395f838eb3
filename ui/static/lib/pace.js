// How often, in ms, views are read again that no live update tells. Each keeps to the delay that its notification record allows (see the records
// under notifications/): there polling was measured, and found to be enough.
export const every = {
  messages: 5_000,
  destinations: 5_000,
  destination: 5_000,
  document: 5_000,
  alerts: 10_000,
  statistics: 30_000,
};
