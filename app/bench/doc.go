// Package bench measures Posthorn on the machine it runs on, beside what it is to be compared with, in the same run.
//
// Every scenario is run once a round, in turn, so that what disturbs the machine disturbs all of them; the figure of a scenario is the median
// of its rounds. A ratio names the scenario that it is measured against. Absolute figures say only what this machine does.
package bench
