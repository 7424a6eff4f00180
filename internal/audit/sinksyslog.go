package audit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/config"
)

const (
	// maxDatagram is the largest message over UDP or a Unix datagram socket, in bytes; a longer one is sent without its texts.
	maxDatagram = 8 << 10
	// dialTimeout bounds a dial, writeTimeout the write of one batch.
	dialTimeout  = 10 * time.Second
	writeTimeout = 20 * time.Second
)

// syslog sends each record as a message of RFC 5424: over TCP and TLS with its length before it (RFC 6587, RFC 5425), else
// one to a datagram. It is not safe for concurrent use.
type syslog struct {
	network, address string
	facility         int
	host             string
	conn             net.Conn
	stream           bool
}

func newSyslog(set config.Syslog) (*syslog, error) {
	network, address, err := set.Dial()
	if err != nil {
		return nil, err
	}
	return &syslog{network: network, address: address, facility: set.Facility, host: headerField(hostName(), 255)}, nil
}

// headerField returns text as a header field: printable ASCII without spaces, "-" if it is empty.
func headerField(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	if text == "" {
		return "-"
	}
	return text[:min(most, len(text))]
}

// message formats a record as RFC 5424. Its text is the line of the record, which has no control characters.
func (s *syslog) message(r Record, line []byte) []byte {
	severity := map[string]int{"error": 3, "warn": 4, "info": 6}[r.Severity()]
	return fmt.Appendf(nil, "<%d>1 %s %s sallyport %d %s - %s", s.facility*8+severity,
		r.Time.UTC().Format("2006-01-02T15:04:05.000000Z07:00"), s.host, os.Getpid(), headerField(string(r.Kind), 32), line)
}

// Send implements [Sink].
func (s *syslog) Send(ctx context.Context, records []Record) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return s.dropConnection(err)
	}
	for _, r := range records {
		message := s.message(r, r.Line)
		if !s.stream && len(message) > maxDatagram {
			message = s.message(r, r.withoutTexts())
		}
		if s.stream {
			message = append(strconv.AppendInt(nil, int64(len(message)), 10), append([]byte(" "), message...)...)
		}
		if _, err := s.conn.Write(message); err != nil {
			return s.dropConnection(err)
		}
	}
	return nil
}

func (s *syslog) dropConnection(err error) error {
	_ = s.conn.Close()
	s.conn = nil
	return err
}

// connect dials, unless there is an open connection.
func (s *syslog) connect(ctx context.Context) error {
	if s.conn != nil && (!s.stream || s.connected()) {
		return nil
	}
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	var err error
	switch s.network {
	case "unix":
		s.conn, err = dialer.DialContext(ctx, "unixgram", s.address)
		if s.stream = err != nil; err != nil {
			s.conn, err = dialer.DialContext(ctx, "unix", s.address)
		}
	case "tls":
		s.stream = true
		s.conn, err = (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", s.address)
	default:
		s.stream = s.network == "tcp"
		s.conn, err = dialer.DialContext(ctx, s.network, s.address)
	}
	return err
}

// closeWait is how long a read waits for the end of a connection.
const closeWait = 10 * time.Millisecond

// connected reports whether the server has not closed the connection, which a write would not detect at once: its records would
// be lost. The server sends no data.
func (s *syslog) connected() bool {
	for {
		began := time.Now()
		if s.conn.SetReadDeadline(began.Add(closeWait)) != nil {
			return false
		}
		late := time.Since(began) > closeWait/2 // on a busy machine; after its deadline, Read does not look at the connection
		_, err := s.conn.Read(make([]byte, 1))
		if late && errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		return !errors.Is(err, io.EOF) && (err == nil || errors.Is(err, os.ErrDeadlineExceeded))
	}
}
