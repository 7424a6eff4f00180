package oauth_test

import (
	"os"
	"testing"

	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(tlstest.M{Tests: m}.Run())
}
