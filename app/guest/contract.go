package guest

import (
	"context"
	"database/sql"
	"strings"
)

// Contract is what a schema makes in a database.
type Contract struct{ wanted []object }

// ReadContract reads it from the schema.
func ReadContract(ctx context.Context, schema string) (Contract, error) {
	wanted, err := contract(ctx, schema)
	return Contract{wanted}, err
}

// Missing lists what a database lacks of it, by kind and name.
func (c Contract) Missing(ctx context.Context, db *sql.DB) (missing []string, err error) {
	there, err := readObjects(ctx, db)
	if err != nil {
		return nil, err
	}
	has := map[object]bool{}
	for _, o := range there {
		has[object{o.kind, strings.ToLower(o.name)}] = true
	}
	for _, o := range c.wanted {
		if !has[o] {
			missing = append(missing, o.String())
		}
	}
	return missing, nil
}
