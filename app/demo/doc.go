// Package demo is `posthorn demo`: the appliance under a supervisor, with sample traffic and a receiver that misbehaves a little, so that
// one can see what at-least-once delivery does, and kill the process to see that nothing is lost.
//
// The appliance is a child process, `posthorn serve`, that is started again when it dies. The receiver stands in the supervisor, as the
// outside world outlives a crash of the sender. Everything else goes over the public API: the demo has no way in that users lack.
//
// No orphan is left: the child is drained and waited for when the supervisor is told to stop, and on Linux the kernel stops it when the
// supervisor is killed.
package demo
