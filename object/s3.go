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
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	continuo "github.com/continuo-log/continuo"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// An object of partBytes or more is sent in parts, and each that is under way is held in memory. S3 takes
// 10,000 of them: objects up to 78 GiB.
const (
	partBytes   = 8 << 20
	partsAtOnce = 2
)

// openS3 opens a bucket and makes sure that it is there and may be listed. Failed requests are made three
// times by the SDK, which waits between them, 20 s at most.
func openS3(ctx context.Context, at s3Location, options Options) (engine, error) {
	settings, err := s3Config(ctx, at, options)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(settings, func(o *s3.Options) { o.UsePathStyle = at.endpoint != "" })
	bucket, err := s3blob.OpenBucket(ctx, client, at.bucket, &s3blob.Options{RequestChecksumCalculation: settings.RequestChecksumCalculation})
	if err != nil {
		return nil, err
	}
	if at.prefix != "" {
		bucket = blob.PrefixedBucket(bucket, at.prefix)
	}
	c := &cloud{bucket: bucket, timeout: options.Timeout, translate: translateS3, upload: uploads(client, settings, options.Timeout)}
	if _, _, err := c.page(ctx, blob.FirstPageToken, "", 1); err != nil {
		_ = c.close() // it holds nothing
		return nil, err
	}
	return c, nil
}

// s3Config reads the AWS settings of the environment, the user and the machine, as all programs do that use the SDK.
func s3Config(ctx context.Context, at s3Location, options Options) (aws.Config, error) {
	load := []func(*config.LoadOptions) error{
		// For credentials. The SDK adds the certificates of AWS_CA_BUNDLE to no other kind of client.
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(options.Timeout)),
		config.WithLogger(logging.Nop{}),
	}
	if at.region != "" {
		load = append(load, config.WithRegion(at.region))
	}
	if at.endpoint != "" {
		load = append(load,
			config.WithBaseEndpoint(at.endpoint),
			config.WithDefaultRegion("us-east-1"), // such services ignore it, and it has to be signed
			// Not all of them know the newer checksums.
			config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
			config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
			// Credentials of an Amazon machine are not for them, and looking for them takes seconds elsewhere.
			config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	settings, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return settings, fmt.Errorf("%w: read the AWS settings: %w", continuo.ErrInvalid, err)
	}
	settings.HTTPClient = s3HTTP(settings.HTTPClient, options.Timeout)
	if settings.Region == "" {
		return settings, fmt.Errorf("%w: no region; add region=NAME to the location, or set AWS_REGION", continuo.ErrInvalid)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, options.Timeout, slow(options.Timeout))
	defer cancel()
	if _, err := settings.Credentials.Retrieve(ctx); err != nil {
		return settings, fmt.Errorf("%w: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws (%w)", continuo.ErrUnavailable, ending(ctx, err))
	}
	return settings, nil
}

// s3HTTP bounds each request by the time in which no byte moves. Loaded is as the settings made it.
func s3HTTP(loaded aws.HTTPClient, timeout time.Duration) *http.Client {
	client, ok := loaded.(*awshttp.BuildableClient)
	if !ok {
		client = awshttp.NewBuildableClient()
	}
	transport := client.GetTransport()
	return &http.Client{
		Transport: &idleTransport{next: transport, limit: timeout},
		// The SDK reads what a redirect says, which is that the region is wrong.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// uploads has what was sent of an object removed also when its context is what ended the upload: a
// service keeps the parts of an upload that nobody ended, and they cost.
func uploads(client *s3.Client, settings aws.Config, timeout time.Duration) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var manager *transfermanager.Client
		if as(&manager) {
			*manager = *transfermanager.New(client, func(o *transfermanager.Options) {
				o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency = partBytes, partBytes, partsAtOnce
				o.RequestChecksumCalculation = settings.RequestChecksumCalculation
				o.FailTimeout = timeout
			})
		}
		return nil
	}
}
