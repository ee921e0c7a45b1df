package object

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	continuo "github.com/continuo-log/continuo"
)

// s3Client makes a client from the AWS settings of the environment, the user and the machine, which all programs
// with the SDK read, and checks that there are a region and credentials.
func s3Client(ctx context.Context, at s3Location, timeout time.Duration) (*s3.Client, error) {
	settings, err := config.LoadDefaultConfig(ctx, s3Options(at, timeout)...)
	if err != nil {
		return nil, fmt.Errorf("%w: read the AWS settings: %w", continuo.ErrInvalid, err)
	}
	if settings.Region == "" {
		return nil, fmt.Errorf("%w: no region; add region=NAME to the location, or set AWS_REGION", continuo.ErrInvalid)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, slow(timeout))
	defer cancel()
	if _, err := settings.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("%w: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws (%w)",
			continuo.ErrUnavailable, ending(ctx, err))
	}
	settings.HTTPClient = s3HTTP(settings.HTTPClient, timeout)
	return s3.NewFromConfig(settings, func(o *s3.Options) { o.UsePathStyle = at.endpoint != "" }), nil
}

// s3Options combines a location with the AWS settings.
func s3Options(at s3Location, timeout time.Duration) []func(*config.LoadOptions) error {
	load := []func(*config.LoadOptions) error{
		// For credentials. The SDK adds the certificates of AWS_CA_BUNDLE only to this kind of client.
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(timeout)),
		config.WithLogger(logging.Nop{}),
	}
	if at.region != "" {
		load = append(load, config.WithRegion(at.region))
	}
	if at.endpoint != "" {
		load = append(load,
			config.WithBaseEndpoint(at.endpoint),
			config.WithDefaultRegion("us-east-1"), // such services ignore it, and it has to be signed
			// Not all of them support the newer checksums.
			config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
			config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
			// Credentials of an Amazon machine are not valid for them, and outside of Amazon the look-up
			// takes seconds.
			config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	return load
}

// s3HTTP bounds each request by the time in which no byte moves. Loaded is the client from the AWS settings.
func s3HTTP(loaded aws.HTTPClient, timeout time.Duration) *http.Client {
	client, ok := loaded.(*awshttp.BuildableClient)
	if !ok {
		client = awshttp.NewBuildableClient()
	}
	return &http.Client{
		Transport: &idleTransport{next: client.GetTransport(), limit: timeout},
		// The SDK handles redirects itself: they mean that the region is wrong.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
