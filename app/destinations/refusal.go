package destinations

import (
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/integrations/webhook"
	"github.com/posthorn/posthorn/app/mediator"
)

func unknown() error {
	return &mediator.Refusal{Kind: mediator.Missing, Code: "unknown-destination", Sentence: "There is no such destination.",
		Hint: "posthorn destinations list shows those of your tenant."}
}

func taken(name string) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "destination-exists", Sentence: fmt.Sprintf("A destination named %s exists already.", name),
		Hint: "Choose another name, or delete that one first."}
}

func leaving(name string) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "destination-leaving",
		Sentence: fmt.Sprintf("The deleted destination %s still finishes its last attempts.", name),
		Hint:     "Try again in a moment, or choose another name."}
}

func tooMany() error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "too-many-destinations",
		Sentence: fmt.Sprintf("There are %d destinations already.", MaxDestinations), Hint: "Delete one that is not used."}
}

func unusable(hold string) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "destination-unusable", Sentence: "This destination " + hold + ".",
		Hint: "It flows again by itself after a start in which it can be used."}
}

func unsigned(kind Kind) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "destination-unsigned",
		Sentence: fmt.Sprintf("Deliveries to a destination of the kind %s are not signed, so that it has no secret.", kind)}
}

func tooManySecrets(name string, next time.Time) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "too-many-secrets",
		Sentence: fmt.Sprintf("%d secrets sign for %s already, and the next of the old ones ends at %s.", webhook.MaxSecrets, name, next.UTC().Format(time.RFC3339)),
		Hint: "Wait for that, or end all of the old ones at once: posthorn destinations rotate-secret " + name +
			" --overlap 0s. What is delivered before the receiver knows the new secret is then refused by it."}
}

func busyTrying() error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "trials-busy",
		Sentence: fmt.Sprintf("%d destinations are being tried already.", trials), Hint: "Try again when they have answered."}
}

func notPulled(d Destination) error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "not-a-pull-destination", Sentence: fmt.Sprintf("The destination %s is a %s: its messages are sent to it.", d.Name, d.Kind),
		Hint: "Create one with the kind pull for a consumer that asks."}
}

func stale() error {
	return &mediator.Refusal{Kind: mediator.Conflict, Code: "stale-fence", Sentence: "This delivery is not held under this fence, or not any more; nothing was changed.",
		Hint: "Its lease ran out, or Posthorn has started again: the delivery is made again, or was settled. Leave it, and ask for the next ones."}
}

// judgeURL turns what the egress guard says about a URL into a violation or a refusal. Neither repeats the URL.
func judgeURL(policy egress.Policy, raw string) (sentence string, refused error) {
	err := policy.CheckURL(raw)
	var address *egress.RefusedError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &address):
		hint := "It is never allowed; use the address that the receiver is reached at from elsewhere."
		if address.Range.IsValid() {
			hint = fmt.Sprintf("The operator can allow it in posthorn.yaml: egress: {allow: [%q]}.", address.Range)
		}
		return "", &mediator.Refusal{Kind: mediator.Invalid, Code: "address-not-allowed",
			Sentence: fmt.Sprintf("The address %s is not allowed: it is %s.", address.Addr, address.Reason), Hint: hint,
			At: []mediator.Violation{{Path: "/url", Message: "leads to an address that is not allowed"}}}
	default:
		return err.Error(), nil
	}
}
