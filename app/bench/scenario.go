package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// Scenario is one thing to measure.
type Scenario struct {
	// Name is stable: it is the key of the kept results.
	Name string
	// Unit is what a figure counts: "/s", "ms".
	Unit string
	// Against names the scenario that the ratio is taken against; empty: none.
	Against string
	// run makes one measurement of about the given length in an empty folder.
	run func(ctx context.Context, dir string, length time.Duration) (float64, error)
}

// Result is a scenario's figures of all rounds.
type Result struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Against string    `json:"against,omitempty"`
	Figures []float64 `json:"figures"`
	Median  float64   `json:"median"`
	Ratio   float64   `json:"ratio,omitempty"`
}

// Options say how long to measure.
type Options struct {
	// Rounds is how often each scenario is run. Defaults to 5.
	Rounds int
	// Length is how long one measurement takes. Defaults to 1 s.
	Length time.Duration
	// Dir is where databases are made and removed; it decides which disk is measured. Defaults to the folder for temporary files.
	Dir string
	// Only limits the run to scenarios whose names begin with one of these; a * at the end changes nothing.
	Only []string
	// Program is the program to measure over HTTP.
	Program string
	// Progress is told what is being measured.
	Progress func(done, all int, name string)
}

// Run measures all scenarios and returns their results in order.
func Run(ctx context.Context, opt Options) ([]Result, error) {
	if opt.Rounds == 0 {
		opt.Rounds = 5
	}
	if opt.Length == 0 {
		opt.Length = time.Second
	}
	scenarios, err := chosen(opt)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(scenarios))
	for round := range opt.Rounds {
		for i, s := range scenarios {
			if opt.Progress != nil {
				opt.Progress(round*len(scenarios)+i, opt.Rounds*len(scenarios), s.Name)
			}
			figure, err := measure(ctx, s, opt)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", s.Name, err)
			}
			results[i].Figures = append(results[i].Figures, figure)
		}
	}
	medians := map[string]float64{}
	for i, s := range scenarios {
		r := &results[i]
		r.Name, r.Unit, r.Against, r.Median = s.Name, s.Unit, s.Against, median(r.Figures)
		medians[s.Name] = r.Median
	}
	for i := range results {
		if base := medians[results[i].Against]; base != 0 {
			results[i].Ratio = results[i].Median / base
		}
	}
	return results, nil
}

func measure(ctx context.Context, s Scenario, opt Options) (float64, error) {
	dir, err := os.MkdirTemp(opt.Dir, "posthorn-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return s.run(ctx, dir, opt.Length)
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// Range returns the least and the most of the figures.
func (r Result) Range() (least, most float64) { return slices.Min(r.Figures), slices.Max(r.Figures) }
