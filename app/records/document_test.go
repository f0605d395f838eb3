package records_test

import (
	"strings"
	"testing"
)

func TestFrontMatterIsStrict(t *testing.T) {
	t.Parallel()
	const file = "conventions/mine.md"
	sound := []string{"---", "title: Mine", "provisions: [P50]", "choice: this", "reason: that", "---", "Text."}
	replace := func(line int, text string) string {
		lines := append([]string(nil), sound...)
		lines[line-1] = text
		return strings.Join(lines, "\n")
	}
	mustLoad(t, map[string]string{file: strings.Join(sound, "\n")})
	for name, test := range map[string]struct {
		text  string
		line  int
		words []string
	}{
		"empty file":        {"", 1, []string{"begins with front matter"}},
		"no front matter":   {"# A title\n", 1, []string{"begins with front matter"}},
		"no end":            {"---\ntitle: x\n", 1, []string{"has no end"}},
		"no UTF-8":          {replace(2, "title: \xff"), 0, []string{"UTF-8"}},
		"unknown field":     {replace(4, "choise: this"), 4, []string{"choise"}},
		"repeated field":    {replace(4, "title: again"), 4, []string{`"title" is there twice`}},
		"no fields":         {"---\n# nothing\n---\n", 0, []string{"it is empty"}},
		"a scalar":          {"---\njust words\n---\n", 2, []string{"front matter"}},
		"a null":            {"---\nnull\n---\n", 2, []string{"null"}},
		"two documents":     {replace(4, "choice: this\n--- # again\nchoice: that"), 5, []string{"one document"}},
		"ended document":    {replace(4, "choice: this\n...\nchoice: that"), 6, []string{"one document"}},
		"deep list":         {replace(4, "choice: "+strings.Repeat("[", 200_000)), 4, []string{"nested too deeply"}},
		"deep mapping":      {replace(4, "choice: "+strings.Repeat("{a: ", 50_000)), 4, []string{"nested too deeply"}},
		"deep dashes":       {replace(4, strings.Repeat("- ", 100_000)), 4, []string{"nested too deeply"}},
		"deep keys":         {replace(4, strings.Repeat("? ", 100_000)), 4, []string{"nested too deeply"}},
		"many tags":         {replace(4, "choice: "+strings.Repeat("!a ", 60_000)), 4, []string{"nested too deeply"}},
		"a tag that panics": {replace(3, "provisions: !000000"), 0, []string{"no YAML"}},
		"wrong type":        {replace(3, "provisions: P50"), 3, []string{"front matter"}},
		"bad YAML":          {replace(4, "choice: [this"), 5, []string{"front matter"}},
		"anchor":            {replace(4, "choice: &a this"), 4, []string{"anchors"}},
		"alias":             {replace(4, "choice: *a"), 4, []string{"anchors"}},
		"missing field":     {replace(5, "# nothing"), 1, []string{"reason is missing"}},
		"blank field":       {replace(5, "reason: ' '"), 5, []string{"reason is missing"}},
		"unknown provision": {replace(3, "provisions: [P57]"), 3, []string{"P57", "P1 to P56"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, map[string]string{file: test.text})
			wantProblem(t, err, file, test.line, test.words...)
		})
	}
}
