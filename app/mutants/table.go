package mutants

// Mutation breaks one provision in one place. The test that shows the provision has to fail with it.
type Mutation struct {
	Name      string
	Provision string
	About     string
	// Test is "package.Test", as the conformance table names it.
	Test    string
	Changes []Change
}

// seeded flips one of the seeded bugs that the chaos proof uses as well.
func seeded(name string) []Change {
	return []Change{{File: "outbox/mutant/off.go", Old: name + " ", New: name + " = !false //"}}
}

func change(file, before, after string) []Change { return []Change{{file, before, after}} }

const schema = "outbox/schema.sql"

// Table is the mutations, in the order of the provisions.
var Table = []Mutation{
	{"effect-not-staged", "P1", "what a command raised is not staged", "app/mediator.TestACommandPassesEveryStepInOrder",
		change("app/mediator/mediator.go", "err = work.stage(ctx)", "_ = work.stage")},
	{"undeclared-let-in", "P2", "an undeclared type may be staged", "outbox.TestContract",
		change(schema, "WHEN NEW.kind = 'integration-event' AND NOT EXISTS", "WHEN 0 AND NOT EXISTS")},
	{"event-without-boundary", "P3", "a record need not name its downstream boundary", "app/records.TestAnEventSaysHowItIsDelivered",
		change("app/records/integration_event.go", `i.required("boundary", e.Boundary)`, "")},
	{"excluded-may-stage", "P4", "an excluded reaction may stage messages", "app/mediator.TestUseCasesAgreeWithTheirRecords",
		change("app/mediator/use_case.go", "r.Delivery == records.Excluded && len(", "false && len(")},
	{"emitted-before-commit", "P5", "after-commit functions run before the commit", "app/mediator.TestAnExcludedReactionRunsAfterTheCommitWithoutARow",
		change("outbox/tx.go", "tx.after = append(tx.after, fn)", "fn()")},
	{"refused-neighbour-kept", "P6", "a refused command's changes stay in the group", "outbox.TestWriterKeepsNeighbours",
		change("outbox/group.go", "return conn.exec(conn.undo) == nil && conn.exec(conn.release) == nil", "return conn.exec(conn.release) == nil")},
	{"payload-altered", "P7", "a JSON payload is not stored byte for byte", "app/api.TestPayloadsKeepTheirBytes",
		change("outbox/stage.go", "return string(m.Payload)\n", "return strings.ReplaceAll(string(m.Payload), \" \", \"\")\n")},
	{"tenant-dropped", "P8", "the outbox record lacks its tenant", "outbox.TestContract",
		change(schema, "m.record, m.tenant, m.occurred_at", "m.record, m.occurred_at")},
	{"error-dropped", "P9", "the last error is not kept", "outbox.TestRetriesBackOffAndEndAtTheBound",
		change("outbox/settle.go", "text = clip(text, maxErrorText)", "text = clip(text, 0)")},
	{"any-kind", "P10", "a message may be of any kind", "outbox.TestContract",
		change(schema, "WHEN NEW.kind IS NULL OR NEW.kind NOT IN ('integration-event', 'journey-step', 'provider-effect')\n      THEN", "WHEN NEW.kind IS NULL\n      THEN")},
	{"refusal-committed", "P11", "what a refused command staged is committed by itself", "app/documents.TestRefusalsChangeNothing",
		change("outbox/group.go", "return conn.exec(conn.rollback) == nil", "conn.guard.committing.Store(true)\n\tdefer conn.guard.committing.Store(false)\n\treturn conn.exec(conn.commit) == nil")},
	{"batch-unbounded", "P12", "a claim takes all that is due", "outbox.TestRateBoundsTheAttempts",
		change("outbox/turn.go", "k := look{lane: l, limit: min(room, d.config.ClaimBatch)", "k := look{lane: l, limit: 1 << 20")},
	{"sent-before-commit", "P13", "a message is sent while its transaction is open", "outbox.TestHandlersRunAfterTheirClaimIsCommitted",
		change("outbox/turn.go", "t.claims = append(t.claims, claim{lane: l, due: found, next: next, probe: k.probe})",
			"t.claims = append(t.claims, claim{lane: l, due: found, next: next, probe: k.probe})\n\t\t\tfor _, dl := range found.deliveries {\n\t\t\t\t_ = l.handler.Outside(ctx, dl)\n\t\t\t}")},
	{"fence-stands-still", "P14", "each claim has the same fence", "outbox.TestRetriesUntilDelivered",
		change("outbox/claim.go", "SET value = value + 1 WHERE name = 'fence'", "SET value = 1 WHERE name = 'fence'")},
	{"call-inside-claim", "P15", "the claim's transaction stays open during the call", "outbox.TestHandlersRunAfterTheirClaimIsCommitted",
		change("outbox/turn.go", "t.claims = append(t.claims, claim{lane: l, due: found, next: next, probe: k.probe})",
			"d.mu.Lock()\n\t\t\tfor _, dl := range found.deliveries {\n\t\t\t\td.mu.Unlock()\n\t\t\t\t_ = l.handler.Outside(ctx, dl)\n\t\t\t\td.mu.Lock()\n\t\t\t}\n\t\t\td.mu.Unlock()\n\t\t\tt.claims = append(t.claims, claim{lane: l, due: found, next: next, probe: k.probe})")},
	{"fence-ignored", "P16", "an attempt is settled whether or not it has its lease", "outbox.TestExpiredLeaseReturnsAndTheLateSettleChangesNothing",
		change("outbox/settle.go", "WHERE state = 'processing' AND lease_owner = ? AND fence = ? AND id `", "WHERE ? IS NOT NULL AND ? IS NOT NULL AND id `")},
	{"lease-for-ever", "P17", "an expired lease does not return", "outbox.TestExpiredLeaseReturnsAndTheLateSettleChangesNothing",
		change("outbox/attempt.go", "running && !a.expired {", "running && !a.expired && false {")},
	{"inbox-ignored", "P18", "a repeated message takes effect again", "outbox.TestResend",
		change("outbox/attempt.go", "o.suppressed = n == 0; !o.suppressed", "o.suppressed = false; n >= 0")},
	{"id-of-each-attempt", "P19", "each attempt has a webhook-id of its own", "app/integrations/webhook.TestRequestOnTheWire",
		change("app/integrations/webhook/request.go", "mutant.NewIDOnRetry && d.Attempt > 1", "d.Attempt > 0")},
	{"one-handler-only", "P20", "an event reaches the first of its handlers", "outbox.TestDeliversToEachHandlerSeparately",
		change(schema, "AND CASE NEW.kind WHEN 'integration-event' THEN NEW.type GLOB r.pattern ELSE NEW.type = r.pattern END;", "AND CASE NEW.kind WHEN 'integration-event' THEN NEW.type GLOB r.pattern ELSE NEW.type = r.pattern END LIMIT 1;")},
	{"any-answer-delivers", "P21", "an attempt is dispatched whatever the target answers", "app/integrations/webhook.TestStatuses", seeded("AnyAnswerDelivers")},
	{"backoff-ignored", "P22", "failed attempts are repeated at once", "outbox.TestRetriesBackOffAndEndAtTheBound", seeded("BackoffIgnored")},
	{"bound-ignored", "P23", "failed attempts are repeated for ever", "outbox.TestRetriesBackOffAndEndAtTheBound", seeded("BoundIgnored")},
	{"store-always-up", "P24", "the gauge says that the store is up", "app/metrics.TestStoreOutageIsAGauge",
		change("app/metrics/metrics.go", "up = 0\n", "up = 1\n")},
	{"polled-in-a-loop", "P25", "a store that is down is asked again at once", "outbox.TestOutageIsPolledWithGrowingPauses",
		change("outbox/outage.go", "retry.NewExponential(50*time.Millisecond)", "retry.NewConstant(time.Millisecond)")},
	{"log-flooded", "P25", "each poll of a store that is down is logged", "outbox.TestOutageIsPolledWithGrowingPauses",
		change("outbox/outage.go", "now.Sub(d.logged) >= logEvery", "now.Sub(d.logged) >= 0")},
	{"outage-charged", "P26", "what could not be settled in an outage is lost", "outbox.TestOutageTouchesNoMessage",
		change("outbox/outage.go", "d.putBack(t)", "")},
	{"always-ready", "P27", "readiness does not ask the dispatcher", "app/api.TestReadyzTellsWhenDispatchIsGated",
		change("app/api/health_routes.go", "\tif len(ready.Reasons) > 0 {\n\t\t\tready.Status = \"gated\"", "\tif false {\n\t\t\tready.Status = \"gated\"")},
	{"version-not-explicit", "P28", "a message may have no schema version", "outbox.TestContract",
		change(schema, "WHEN NEW.schema_version IS NULL OR typeof(NEW.schema_version) <> 'integer' OR NEW.schema_version NOT BETWEEN 1 AND 1000000", "WHEN 0")},
	{"unreadable-given", "P29", "a handler is given what it cannot read", "outbox.TestEachVersionIsReadAndWhatCannotBeReadWaits",
		change("outbox/readers.go", "if !ok || t.SchemaVersion > known {\n\t\treturn false", "if !ok || t.SchemaVersion > known {\n\t\treturn true")},
	{"failed-not-counted", "P30", "dead letters are not published", "app/metrics.TestIndicatorsArePublished",
		change("app/metrics/metrics.go", "o.ObserveInt64(in.failed, lane.Failed, of)", "o.ObserveInt64(in.failed, 0, of)")},
	{"alert-never-raised", "P31", "no threshold is ever breached for long enough", "app/alerts.TestEachMeasureRaisesAndClears",
		change("app/alerts/watch.go", "now.Sub(one.breached) < raiseAfter", "now.Sub(one.breached) >= 0")},
	{"states-mixed", "P32", "a dispatched delivery may lack its completion", "outbox.TestContract",
		change(schema, "suppressed IN (0, 1) AND completed_at IS NOT NULL AND blocks IS NULL AND fence > 0", "suppressed IN (0, 1) AND blocks IS NULL AND fence > 0")},
	{"message-mutable", "P33", "a staged message may be changed", "outbox.TestContract",
		change(schema, "BEFORE UPDATE OF seq, id, kind, type,", "BEFORE UPDATE OF kind, type,")},
	{"replay-not-audited", "P34", "a replay's reason is not written down", "outbox.TestReplayTwiceWorksTwice",
		change("outbox/replay.go", "insertReplays, by.Actor, by.Reason, now, list); err != nil", "insertReplays, by.Actor, \"\", now, list); err != nil")},
	{"unreadable-staged", "P35", "what the running program cannot read may be staged", "outbox.TestContract",
		change(schema, "AND EXISTS (SELECT 1 FROM outbox_workers)\n", "AND 0\n")},
	{"writer-before-reader", "P36", "the new version is emitted whatever the setting says", "app/lending.TestBothVersionsAreReadAndTheSettingSaysWhichIsWritten",
		change("app/lending/events.go", `version := m.records().Int("lending-loan-borrowed-version")`, `version := max(2, m.records().Int("lending-loan-borrowed-version"))`)},
	{"pending-not-planned", "P37", "rollback-check passes over what is pending", "app.TestTwoReleasesOneAfterTheOther",
		change("outbox/undispatched.go", "INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL", "INDEXED BY outbox_deliveries_open WHERE completed_at IS NULL AND state = 'processing'")},
	{"cost-unmeasured", "P38", "a notification record need not say what polling was measured to cost", "app/records.TestNotificationsAreChecked",
		change("app/records/notification.go", `i.required("measured_cost", n.MeasuredCost)`, "")},
	{"live-without-need", "P39", "a screen is live though its record decides to poll", "app.TestTopicsHaveRecords",
		change("app/live/topic.go", "topicBacklog, topicMessage, topicDesk}", "topicBacklog, topicMessage, topicDesk, \"alerts\"}")},
	{"no-event-stream", "P40", "the stream is not one of server-sent events", "realtime.TestEndpointStream",
		change("realtime/writer.go", `{"text/event-stream"}`, `{"application/json"}`)},
	{"transport-unrecorded", "P42", "a live record need not say which hosted platforms carry its transport", "app/records.TestNotificationsAreChecked",
		change("app/records/notification.go", `i.required("platform_support", n.PlatformSupport)`, "")},
	{"freshness-undeclared", "P43", "the backlog does not say how fresh it is", "app/api.TestWireShapes",
		change("app/api/backlog_routes.go", "out := backlog{At: b.At, Handlers: []lane{}, Freshness: mediator.Immediate}", "out := backlog{At: b.At, Handlers: []lane{}}")},
	{"anybody-listens", "P44", "a refused subscription is served", "realtime.TestEndpointAnswersBadInput",
		change("realtime/endpoint.go", "p, err := e.Authorize(r, slices.Clone(topics))\n\tif err != nil {", "p, err := e.Authorize(r, slices.Clone(topics))\n\tif err != nil && false {")},
	{"tenants-mixed", "P44", "a topic is one for all tenants", "realtime.TestTenantsAreApart", []Change{
		{"realtime/hub.go", "h.publish(key{tenant, n.Topic}, n, data)", "h.publish(key{\"\", n.Topic}, n, data)"},
		{"realtime/hub.go", "k := key{s.Tenant, t}", "k := key{\"\", t}"},
		{"realtime/hub.go", "k := key{c.Tenant, t}", "k := key{\"\", t}"},
	}},
	{"access-for-ever", "P45", "an open stream is never authorized again", "realtime.TestRevalidation",
		change("realtime/schedule.go", "go c.revalidate(ctx, c.Subscriber)", "_ = ctx")},
	{"expiry-ignored", "P45", "a stream outlives its credential", "realtime.TestExpiry",
		change("realtime/schedule.go", "return !c.Expires.IsZero() && !time.Now().Round(0).Before(c.Expires)", "return false")},
	{"reconnects-at-once", "P46", "the client reconnects without a pause", "realtime.TestWatchBackoff",
		change("realtime/watch.go", "d := max(drawn, min(max(w.least, w.once), longestWait))", "d := min(drawn, 0)")},
	{"gap-unnoticed", "P46", "the client does not refresh after a gap", "realtime.TestWatchTakesAnUnansweredReconnectionAsAGap",
		change("realtime/watch.go", "\tdefault:\n\t\tw.client.OnGap(GapLost)\n\t}\n}", "\tdefault:\n\t}\n}")},
	{"repeats-told", "P47", "the client passes on repeats and what is out of order", "realtime.TestWatchDropsDuplicatesAndReorderings",
		change("realtime/watch.go", "n.Version != 0 && n.Version <= seen", "n.Version < 0")},
	{"connections-unbounded", "P48", "a host takes any number of connections", "realtime.TestConnectionBounds",
		change("realtime/hub.go", "case h.roster.size >= h.cfg.MaxConnections:", "case h.roster.size < 0:")},
	{"slow-client-buffered", "P49", "what a slow client has not taken is queued without a bound", "realtime.TestSlotsAgainstModel",
		change("realtime/slots.go", "if s.queue[i].key == p.key {", "if s.queue[i].key == p.key && false {")},
}

// Unbroken says why a provision has no mutation.
var Unbroken = map[string]string{
	"P41": "nothing here is bidirectional",
}
