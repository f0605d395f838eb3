package app

import (
	"slices"

	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/messages"
)

// useCases lists what the product's modules do, each tied to its record. A start, and each reading of the records, holds the list against
// them.
func useCases() []mediator.UseCase {
	return slices.Concat(
		[]mediator.UseCase{documents.UseCase, messages.UseCase},
		lending.UseCases(),
	)
}
