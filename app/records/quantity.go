package records

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Unit is what a setting's value counts.
type Unit string

// The units of settings.
const (
	Duration Unit = "duration"   // 500ms, 15s, 1h30m, 3d
	Bytes    Unit = "bytes"      // 512, 16KiB, 1MiB, 2GiB
	Count    Unit = "count"      // 4096
	Ratio    Unit = "ratio"      // 0.2 or 20%
	Rate     Unit = "per-second" // 50, 0.5
)

// form says how a value of the unit is written.
func (u Unit) form() string {
	switch u {
	case Duration:
		return "a duration such as 500ms, 15s, 1h30m or 3d"
	case Bytes:
		return "a size such as 512, 16KiB or 1MiB"
	case Count:
		return "a whole number such as 4096"
	case Ratio:
		return "a ratio such as 0.2 or 20%"
	case Rate:
		return "a number for each second such as 50 or 0.5"
	}
	return ""
}

// Quantity is a value with its unit. Durations, bytes and counts are whole numbers and are never rounded.
type Quantity struct {
	text  string
	unit  Unit
	whole int64 // nanoseconds, bytes or a count
	real  float64
}

// String is the quantity as it was written.
func (q Quantity) String() string { return q.text }

// Unit is what the quantity counts.
func (q Quantity) Unit() Unit { return q.unit }

// Number is the quantity as a number of its unit: seconds for a duration, a part of 1 for a ratio.
func (q Quantity) Number() float64 {
	if q.unit == Duration {
		return time.Duration(q.whole).Seconds()
	}
	return float64(q.whole) + q.real
}

// compare orders two quantities of one unit.
func (q Quantity) compare(other Quantity) int {
	return cmp.Or(cmp.Compare(q.whole, other.whole), cmp.Compare(q.real, other.real))
}

var (
	errNegative = errors.New("it may not be negative")
	errTooLarge = errors.New("it is too large")

	decimalForm = regexp.MustCompile(`\A[0-9]+(\.[0-9]+)?\z`)
	byteForm    = regexp.MustCompile(`\A([0-9]+) ?(|B|KiB|MiB|GiB|TiB)\z`)
	dayForm     = regexp.MustCompile(`\A([0-9]+)d(.*)\z`)
)

// parseQuantity reads a value in its unit.
func parseQuantity(text Scalar, unit Unit) (Quantity, error) {
	quantity := Quantity{text: strings.TrimSpace(string(text)), unit: unit}
	var err error
	switch unit {
	case Duration:
		quantity.whole, err = parseDuration(quantity.text)
	case Bytes:
		quantity.whole, err = parseBytes(quantity.text)
	case Count:
		quantity.whole, err = strconv.ParseInt(quantity.text, 10, 64)
	case Ratio:
		quantity.real, err = parseRatio(quantity.text)
	case Rate:
		quantity.real, err = parseDecimal(quantity.text)
	default:
		return quantity, fmt.Errorf("%.40q is no unit", unit)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		err = errTooLarge
	case err == nil && quantity.whole < 0:
		err = errNegative
	}
	if err != nil {
		return quantity, fmt.Errorf("%.40q is not %s: %w", quantity.text, unit.form(), cause(err))
	}
	return quantity, nil
}

// cause drops the standard library's repetition of the text.
func cause(err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		return number.Err
	}
	return err
}

// parseDuration adds days to what the standard library reads.
func parseDuration(text string) (int64, error) {
	const day = int64(24 * time.Hour)
	var days int64
	rest := text
	if parts := dayForm.FindStringSubmatch(text); parts != nil {
		count, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return 0, err
		}
		if count > math.MaxInt64/day {
			return 0, errTooLarge
		}
		days, rest = count*day, parts[2]
		if rest == "" {
			return days, nil
		}
	}
	if strings.HasPrefix(rest, "-") {
		return 0, errNegative
	}
	span, err := time.ParseDuration(rest)
	if err != nil {
		return 0, errors.New("it is a number and a unit: ms, s, m, h or d")
	}
	if int64(span) > math.MaxInt64-days {
		return 0, errTooLarge
	}
	return days + int64(span), nil
}

func parseBytes(text string) (int64, error) {
	parts := byteForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, errors.New("it is a whole number, and B, KiB, MiB, GiB or TiB")
	}
	shift := map[string]int{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[parts[2]]
	count, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return 0, err
	}
	if count > math.MaxInt64>>shift {
		return 0, errTooLarge
	}
	return count << shift, nil
}

func parseRatio(text string) (float64, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		value, err := parseDecimal(strings.TrimSpace(percent))
		return value / 100, err
	}
	return parseDecimal(text)
}

// parseDecimal reads plain decimals only: no exponents, infinities or hexadecimal.
func parseDecimal(text string) (float64, error) {
	if !decimalForm.MatchString(text) {
		return 0, errors.New("it is a plain decimal number")
	}
	return strconv.ParseFloat(text, 64)
}
