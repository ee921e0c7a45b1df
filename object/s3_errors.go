package object

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/aws/smithy-go"
	continuo "github.com/continuo-log/continuo"
)

// errBeyond means that a range begins at or after the object's end.
var errBeyond = errors.New("the object ends before")

// translateS3 returns the root's error for one of the SDK's, by the code that the service sent. An error without
// such a code means that the service was not reached.
func translateS3(err error) error {
	if err == nil {
		return nil
	}
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return fmt.Errorf("%w: %w", continuo.ErrUnavailable, innermost(err))
	}
	switch answer.ErrorCode() {
	case "NoSuchKey", "NotFound":
		return continuo.ErrNotFound
	case "InvalidRange":
		return errBeyond
	case "NoSuchBucket":
		return fmt.Errorf("%w: there is no such bucket; make it, or name another one (%w)", continuo.ErrUnavailable, answer)
	case "PermanentRedirect", "TemporaryRedirect", "MovedPermanently", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return fmt.Errorf("%w: the bucket is in another region; add region=NAME to the location (%w)", continuo.ErrUnavailable, answer)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "InvalidSecurity":
		return fmt.Errorf("%w: the credentials are not accepted; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile (%w)", continuo.ErrUnavailable, answer)
	case "AccessDenied", "Forbidden", "AllAccessDisabled", "AccountProblem":
		return fmt.Errorf("%w: these credentials may not do this; allow them to list the bucket and to get, put and delete its objects (%w)", continuo.ErrUnavailable, answer)
	case "RequestTimeTooSkewed":
		return fmt.Errorf("%w: the clock of this machine is wrong; set it (%w)", continuo.ErrUnavailable, answer)
	case "XMinioStorageFull", "InsufficientStorage", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded":
		return fmt.Errorf("%w: nothing was stored; free some space and try again (%w)", continuo.ErrFull, answer)
	case "XMinioReadOnly", "MethodNotAllowed":
		return fmt.Errorf("%w: the bucket takes no changes (%w)", continuo.ErrReadOnly, answer)
	}
	if answer.ErrorFault() == smithy.FaultServer || isBusy(answer.ErrorCode()) {
		return fmt.Errorf("%w: %w", continuo.ErrUnavailable, answer)
	}
	return answer
}

func isBusy(code string) bool {
	switch code {
	case "InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "Throttling", "ThrottlingException":
		return true
	}
	return false
}

// innermost removes the SDK's wrapping from a network error.
func innermost(err error) error {
	var network *url.Error
	if errors.As(err, &network) {
		return network
	}
	return err
}
