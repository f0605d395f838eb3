package records

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseQuantity(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		unit  Unit
		text  Scalar
		whole int64
		real  float64
	}{
		{Duration, "0s", 0, 0},
		{Duration, "500ms", int64(500 * time.Millisecond), 0},
		{Duration, "1h30m", int64(90 * time.Minute), 0},
		{Duration, "3d", int64(72 * time.Hour), 0},
		{Duration, "1d12h", int64(36 * time.Hour), 0},
		{Bytes, "0", 0, 0},
		{Bytes, "512B", 512, 0},
		{Bytes, "16 KiB", 16 << 10, 0},
		{Bytes, "2TiB", 2 << 40, 0},
		{Count, "9223372036854775807", math.MaxInt64, 0},
		{Ratio, "20%", 0, 0.2},
		{Ratio, "0.5 %", 0, 0.005},
		{Ratio, "0.2", 0, 0.2},
		{Rate, "0.5", 0, 0.5},
	} {
		got, err := parseQuantity(test.text, test.unit)
		if err != nil || got.whole != test.whole || got.real != test.real {
			t.Errorf("%s %s = %d, %g, %v", test.unit, test.text, got.whole, got.real, err)
		}
	}
	for unit, texts := range map[Unit][]Scalar{
		Duration: {"", "15", "-1s", "1d-1h", "106752d", "1d106752d", "9223372036855ms", "3 d", "1w", "106751d24h", "NaNs"},
		Bytes:    {"", "-1", "1.5MiB", "1MB", "1kb", "8388608TiB", "99999999999999999999"},
		Count:    {"", "-1", "1.0", "1e3", "0x10", "1_000", "9223372036854775808", "٣"},
		Ratio:    {"", "-0.1", "1e-2", "NaN", "Inf", "20 percent", "%"},
		Rate:     {"", "-1", "1e3", "inf"},
		"meters": {"1"},
	} {
		for _, text := range texts {
			if got, err := parseQuantity(text, unit); err == nil {
				t.Errorf("%s %q was read as %d, %g", unit, text, got.whole, got.real)
			}
		}
	}
}

// What a duration or a size means does not depend on how it is written.
func TestQuantitiesKeepTheirValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		span := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "span"))
		days := span / (24 * time.Hour)
		text := Scalar(strconv.FormatInt(int64(days), 10) + "d" + (span % (24 * time.Hour)).String())
		if got, err := parseQuantity(text, Duration); err != nil || got.whole != int64(span) {
			t.Fatalf("%s = %d, %v", text, got.whole, err)
		}
		unit := rapid.SampledFrom([]string{"", "B", "KiB", "MiB", "GiB", "TiB"}).Draw(t, "unit")
		shift := 10 * max(strings.Index("BKMGT", (unit + "B")[:1]), 0)
		count := rapid.Int64Range(0, math.MaxInt64>>shift).Draw(t, "count")
		text = Scalar(strconv.FormatInt(count, 10) + unit)
		if got, err := parseQuantity(text, Bytes); err != nil || got.whole != count<<shift {
			t.Fatalf("%s = %d, %v", text, got.whole, err)
		}
	})
}
