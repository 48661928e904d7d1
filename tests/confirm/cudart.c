/* A stand-in for libcudart.so.13 on a machine without devices: memory is the host's.  The number of
 * devices is in FAKE_DEVICES, 0 if that is not set. */
#include <stdlib.h>
#include <string.h>

enum { cudaSuccess = 0, cudaErrorNoDevice = 100, cudaErrorInvalidDevice = 101 };

static int devices(void)
{
	const char *n = getenv("FAKE_DEVICES");

	return n != NULL ? atoi(n) : 0;
}

int cudaGetDeviceCount(int *count)
{
	*count = devices();
	return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

int cudaSetDevice(int device)
{
	return device >= 0 && device < devices() ? cudaSuccess : cudaErrorInvalidDevice;
}

/* The demo's mock library copies four bytes an element whatever the type is. */
int cudaMalloc(void **at, size_t size)
{
	*at = malloc(2 * size);
	return *at != NULL ? cudaSuccess : 2;
}

int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
	(void)kind;
	memcpy(to, from, size);
	return cudaSuccess;
}

int cudaDeviceSynchronize(void)
{
	return cudaSuccess;
}
