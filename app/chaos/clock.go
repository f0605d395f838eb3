//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clock gives a program a wall clock of its own. Go asks the kernel for the time through the vDSO, where nothing can come between: so the program
// is started without one, and the system calls that it then makes are answered from here (seccomp's user notification), moved by an
// offset. The monotonic clock is left alone, as it is when somebody sets a machine's clock.
type clock struct {
	offset atomic.Int64 // nanoseconds
	asked  atomic.Int64 // how often
}

// launchFlag makes this program the launcher of another: it installs the filter in itself and becomes the other one.
const launchFlag = "--launch-with-clock"

func init() {
	if len(os.Args) > 2 && os.Args[1] == launchFlag {
		runtime.LockOSThread() // the main thread, which alone is traced
		fmt.Fprintln(os.Stderr, "chaos:", launch(os.Args[2:]))
		os.Exit(1)
	}
}

// launch never returns unless it fails. Descriptor 3 is the socket on which the filter's listener is handed over.
func launch(args []string) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: yes, Jf: no}
	}
	answer := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value} }
	program := []unix.SockFilter{
		load(0), // the call's number
		equal(unix.SYS_GETTIMEOFDAY, 4, 0),
		equal(unix.SYS_CLOCK_GETTIME, 0, 2),
		load(16), // its first argument
		equal(unix.CLOCK_REALTIME, 1, 0),
		answer(unix.SECCOMP_RET_ALLOW),
		answer(unix.SECCOMP_RET_USER_NOTIF),
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return fmt.Errorf("install filter: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return fmt.Errorf("hand over listener: %w", err)
	}
	_ = unix.Close(3)
	_ = unix.Close(int(listener))
	return fmt.Errorf("become %s: %w", args[0], syscall.Exec(args[0], args, os.Environ()))
}

// madeLauncher is the copy that main has to remove; empty: none was made.
var madeLauncher string

// launcher is a copy of this program where the program's user may execute it: what `go run` makes lies in a folder of its own user only.
// main removes it.
var launcher = sync.OnceValues(func() (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find launcher: %w", err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		return "", fmt.Errorf("read launcher: %w", err)
	}
	file, err := os.CreateTemp("", "posthorn-chaos-launcher-")
	if err != nil {
		return "", fmt.Errorf("copy launcher: %w", err)
	}
	madeLauncher = file.Name()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(0o755), file.Close()); err != nil {
		return file.Name(), fmt.Errorf("copy launcher: %w", err)
	}
	return file.Name(), nil
})

// start starts a command under this clock.
func (k *clock) start(cmd *exec.Cmd) error {
	self, err := launcher()
	if err != nil {
		return err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "clock"), os.NewFile(uintptr(ends[1]), "clock")
	defer ours.Close()
	defer theirs.Close()
	cmd.Args = append([]string{self, launchFlag, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr.Ptrace = true
	// Only the thread that started a process may trace it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := withoutVDSO(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		return err
	}
	listener, err := receiveListener(ours)
	if err != nil {
		_ = cmd.Process.Kill()
		return err
	}
	go k.serve(listener)
	return nil
}

// withoutVDSO follows a traced process through its two execs and takes the vDSO's address out of what the kernel tells the second program.
func withoutVDSO(pid int) error {
	for execs := 0; execs < 2; {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			return fmt.Errorf("wait for launcher: %w", err)
		}
		if !status.Stopped() {
			return fmt.Errorf("the launcher ended with %d", status.ExitStatus())
		}
		forward := status.StopSignal()
		if forward == syscall.SIGTRAP {
			forward = 0
			if execs++; execs == 2 {
				break
			}
		}
		if err := syscall.PtraceCont(pid, int(forward)); err != nil {
			return fmt.Errorf("go on with launcher: %w", err)
		}
	}
	var registers syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &registers); err != nil {
		return fmt.Errorf("read registers: %w", err)
	}
	// The stack holds argc, the arguments, 0, the environment, 0, and pairs of a kind and a value that end with the kind 0.
	place, word := uintptr(registers.Rsp), make([]byte, 8)
	next := func() (uint64, error) {
		_, err := syscall.PtracePeekData(pid, place, word)
		place += 8
		return binary.LittleEndian.Uint64(word), err
	}
	if _, err := next(); err != nil {
		return fmt.Errorf("read stack: %w", err)
	}
	for zeros := 0; zeros < 2; {
		value, err := next()
		if err != nil {
			return fmt.Errorf("read stack: %w", err)
		}
		if value == 0 {
			zeros++
		}
	}
	const sysinfoEhdr, ignore = 33, 1
	for {
		kind, err := next()
		if err != nil || kind == 0 {
			return errors.Join(errors.New("the kernel gives no vDSO"), err, syscall.PtraceDetach(pid))
		}
		if kind == sysinfoEhdr {
			binary.LittleEndian.PutUint64(word, ignore)
			if _, err := syscall.PtracePokeData(pid, place-8, word); err != nil {
				return fmt.Errorf("write stack: %w", err)
			}
			return syscall.PtraceDetach(pid)
		}
		place += 8
	}
}

func receiveListener(socket *os.File) (int, error) {
	conn, err := net.FileConn(socket)
	if err != nil {
		return 0, fmt.Errorf("receive listener: %w", err)
	}
	defer conn.Close()
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("receive listener: no unix socket")
	}
	_ = unixConn.SetReadDeadline(time.Now().Add(5 * time.Second))
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unixConn.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return 0, fmt.Errorf("receive listener: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("receive listener: %d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, fmt.Errorf("receive listener: %d descriptors: %w", len(fds), err)
	}
	return fds[0], nil
}

// The kernel's structures for user notification.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		call       int32
		arch       uint32
		place      uint64
		args       [6]uint64
	}
	reply struct {
		id           uint64
		value        int64
		errno, flags int32
	}
)

const (
	receiveNotification = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	sendReply           = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
)

// serve answers what a process asks for until it has ended.
func (k *clock) serve(listener int) {
	defer unix.Close(listener)
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, 1000); err != nil && !errors.Is(err, unix.EINTR) || ready[0].Revents&unix.POLLHUP != 0 {
			return
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			continue
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), receiveNotification, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // it was interrupted, or has ended
		}
		k.asked.Add(1)
		now := time.Now().Add(time.Duration(k.offset.Load()))
		place, part := n.args[1], uint64(now.Nanosecond())
		if n.call == unix.SYS_GETTIMEOFDAY {
			place, part = n.args[0], part/1000
		}
		var text [16]byte
		binary.LittleEndian.PutUint64(text[:8], uint64(now.Unix()))
		binary.LittleEndian.PutUint64(text[8:], part)
		r := reply{id: n.id}
		if err := writeMemory(int(n.pid), place, text[:]); err != nil {
			r.errno = -int32(unix.EFAULT)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), sendReply, uintptr(unsafe.Pointer(&r)))
	}
}

func writeMemory(pid int, place uint64, text []byte) error {
	local := []unix.Iovec{{Base: &text[0], Len: uint64(len(text))}}
	remote := []unix.RemoteIovec{{Base: uintptr(place), Len: len(text)}}
	_, err := unix.ProcessVMWritev(pid, local, remote, 0)
	return err
}

func (m *machine) probeClock(ctx context.Context) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("only on amd64")
	}
	k := &clock{}
	k.offset.Store(int64(-24 * time.Hour))
	var said strings.Builder
	cmd := exec.CommandContext(ctx, m.binary, "version")
	cmd.SysProcAttr = apart(m.user)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := k.start(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("posthorn version: %w: %s", err, firstLine([]byte(said.String()), nil))
	}
	if k.asked.Load() == 0 {
		return errors.New("the program does not ask for the time")
	}
	return nil
}

func clockFaults() []fault {
	k := &clock{}
	return []fault{{name: "clock-jump", about: "the wall clock jumps by a day, by years, to 1970, under load and at a start: nothing early, stuck or purged", needs: []need{needClock},
		cycles: [3]int{3, 8, 80}, seconds: 22, bed: options{start: k.start, pace: 3 * time.Millisecond}, cycle: k.jump}}
}

// jump sets the clock while attempts are under way; every other time the program finds it so when it starts.
func (k *clock) jump(ctx context.Context, b *bed, random *rand.Rand) (bool, error) {
	offsets := []time.Duration{24 * time.Hour, -24 * time.Hour, 5 * 365 * 24 * time.Hour, 0, time.Until(time.Unix(3600, 0)), 90 * time.Minute}
	to := offsets[random.IntN(len(offsets))]
	moved := to != time.Duration(k.offset.Load())
	asked := k.asked.Load()
	b.receiver.hold("plain")
	b.run(ctx, between(random, 100*time.Millisecond, 200*time.Millisecond))
	k.offset.Store(int64(to))
	time.Sleep(attemptTime / 3)
	b.receiver.release("plain")
	time.Sleep(200 * time.Millisecond)
	b.load.stop()
	if random.IntN(2) == 0 {
		b.program.kill()
		return moved && k.asked.Load() > asked, b.restart(ctx)
	}
	return moved && k.asked.Load() > asked, b.resolve(ctx)
}
