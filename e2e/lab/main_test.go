//go:build linux

package lab_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

var shared lab.Shared

// childVariable makes the test program a program that makes a lab and then waits to be killed.
const childVariable = "HOSTWARRANT_LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(labAndWait(dir))
	}
	os.Exit(shared.Main(m))
}

// labAndWait makes a lab with a host, says so on standard output, and waits for its own end.
func labAndWait(dir string) int {
	helper, code, ran := lab.HelperMain(os.Args)
	if ran {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := lab.New(ctx, lab.Options{Helper: helper, StateDir: dir})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	h, err := l.StartHost(ctx, lab.HostOptions{Name: "host-a", ShimDir: os.Getenv(childVariable + "_SHIM"), Node: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if os.Getenv(childVariable+"_DETACH") != "" {
		if err := l.Detach(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Printf("up %s %d\n", l.ID(), h.PID())
	select {}
}
