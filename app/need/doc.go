// Package need measures whether a screen needs live updates: what polling at several intervals shows late and costs on this machine, beside
// the stream, for each screen that a notification record describes.
//
// A screen is live only where the measurement says so (P38, P39): the record sets the delay that a person's decision on that screen allows, and
// every interval of polling that keeps within it costs more than the budget allows, while the stream costs less. The figures printed are those
// that the record holds.
package need
