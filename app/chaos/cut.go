//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"time"
)

func cutFaults() []fault {
	return []fault{
		{name: "power-cut", about: "power cut under load: a reflinked image of the disk", needs: []need{needImage}, cycles: [3]int{5, 60, 600}, seconds: 55,
			bed: options{image: true, pace: 4 * time.Millisecond}, cycle: cutAtRandom},
	}
}

// cutAtRandom takes the power away: the process stands still, its disk is copied as it is without what the kernel had not written yet, and the next
// boot finds the copy.
func cutAtRandom(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	b.run(ctx, between(random, 20*time.Millisecond, 250*time.Millisecond))
	b.program.freeze()
	if err := b.image.cut(); err != nil {
		return false, err
	}
	b.program.kill()
	b.load.stop()
	if err := b.image.swap(); err != nil {
		return false, err
	}
	return true, b.restart(ctx)
}
