// Package test stands in for kuttl's harness, which needs Docker's libraries.
package test

import (
	"testing"

	"github.com/kudobuilder/kuttl/pkg/apis/testharness/v1beta1"
)

// Harness runs no test.
type Harness struct {
	TestSuite v1beta1.TestSuite
	T         *testing.T
}

// Run says so.
func (*Harness) Run() { panic("kubectl kudo test is not built in: kuttl is a stub here") }
