package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/app/records"
)

func settingsCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:      "settings",
		Usage:     "Show each setting: its value, its bounds, where it comes from and what it was drawn from",
		ArgsUsage: "[ID…]",
		Description: `To change one, write it into posthorn.yaml with what you observed, and start again:

    settings:
      delivery-timeout: {value: 20s, observation: the ledger needs 16 s at month end}

SOURCE says where a value comes from: built-in, file (a record of the data folder) or override (posthorn.yaml). Where there is no data
folder yet, the built-in ones are shown.`,
		Flags: serverFlags(),
		Action: func(c *cli.Context) error {
			given := c.Args().Slice()
			show := func(answer json.RawMessage) error { return deps.showSettings(c, answer, given) }
			address, err := deps.server(c)
			if err != nil {
				return err
			}
			if _, err := os.Stat(deps.dataDir(c)); err != nil && address == "" && deps.place(c).db == "" {
				answer, err := builtInSettings()
				if err != nil {
					return err
				}
				return show(answer)
			}
			return deps.withClient(c, existing, func(ctx context.Context, posthorn *client.Client) error {
				var answer json.RawMessage
				if err := posthorn.Do(ctx, http.MethodGet, "/v1/settings", nil, &answer); err != nil {
					return err
				}
				return show(answer)
			})
		},
	}
}

func builtInSettings() (json.RawMessage, error) {
	set, err := records.Load(nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Settings []records.SettingView `json:"settings"`
	}
	for _, setting := range set.Settings() {
		list.Settings = append(list.Settings, setting.View())
	}
	return json.Marshal(list)
}

func (d Deps) showSettings(c *cli.Context, answer json.RawMessage, given []string) error {
	var list struct {
		Settings []records.SettingView `json:"settings"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	found := list.Settings
	if len(given) > 0 {
		found = nil
		for _, id := range given {
			before := len(found)
			for _, setting := range list.Settings {
				if setting.ID == id {
					found = append(found, setting)
				}
			}
			if len(found) == before {
				return &Failure{Code: ExitFailed, Sentence: fmt.Sprintf("there is no setting %q", id), Advice: "posthorn settings lists them"}
			}
		}
	}
	out := d.terminal(c)
	if out.json {
		return out.encode(map[string]any{"settings": found})
	}
	if len(given) == 0 {
		table := out.table("SETTING", "VALUE", "LEAST", "MOST", "SOURCE", "TITLE")
		for _, s := range found {
			source := out.paint.plain(string(s.Source))
			if s.Source != records.FromBuiltIn {
				source = out.paint.yellow(string(s.Source))
			}
			table.row(s.ID, s.Value, s.Least, s.Most, source, s.Title)
		}
		return table.end()
	}
	for i, s := range found {
		if i > 0 {
			out.printf("\n")
		}
		out.printf("%s  %s\n", clean(s.ID), clean(s.Title))
		for _, pair := range [][2]string{{"value", s.Value}, {"source", string(s.Source)}, {"unit", string(s.Unit)}, {"bounds", s.Least + " to " + s.Most},
			{"not above", s.NotAbove}, {"default", s.Default}, {"derived from", s.DerivedFrom}, {"observation", s.Observation}} {
			if pair[1] != "" {
				out.printf("  %-12s  %s\n", pair[0], clean(pair[1]))
			}
		}
	}
	return nil
}
