// about: uchar4 loads and stores, make_uchar4, and float2, int4 in passing.
// kernel: brighten
// grid: 1
// block: 32
// arg: uint8[27,4] integers(61, 0, 256)
// arg: int32[27,4] zeros
// arg: float32[27,2] zeros
// arg: int32 27
// equals: pixels = np.stack([np.minimum(pixels[:, 0].astype(int) + 40, 255), pixels[:, 1], 255 - pixels[:, 2], pixels[:, 3]], axis=1)
// equals: wide = pixels[:, ::-1]
// equals: pair = pixels[:, :2].astype(np.float32) / np.float32(2)
extern "C" __global__ void brighten(uchar4* pixels, int4* wide, float2* pair, int n)
{
    int i = threadIdx.x;
    if (i < n) {
        uchar4 p = pixels[i];
        wide[i] = make_int4(p.w, p.z, p.y, p.x);
        pair[i] = make_float2(p.x / 2.0f, p.y / 2.0f);
        pixels[i] = make_uchar4(min(p.x + 40, 255), p.y, 255 - p.z, p.w);
    }
}
