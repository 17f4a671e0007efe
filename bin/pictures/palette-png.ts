// Writes a picture of a page as a PNG with a palette of 256 colours, which takes a third of the bytes: a page has few colours but
// those at the edges of letters. It reads the PNGs of Chromium only: eight bits for each of red, green, blue (and opacity), not
// interlaced.
import { crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10])
const COLOURS = 256
/** Colours of this squared distance look the same. */
const SAME = 48
const CHANNELS: Partial<Record<number, number>> = { 2: 3, 6: 4 }

interface Pixels {
  width: number
  height: number
  /** Three bytes for each. */
  rgb: Uint8Array
}

export function withPalette(png: Buffer): Buffer {
  const { width, height, rgb } = read(png)
  const counts = new Map<number, number>()
  for (let at = 0; at < rgb.length; at += 3) {
    const colour = colourAt(rgb, at)
    counts.set(colour, (counts.get(colour) ?? 0) + 1)
  }
  const palette = paletteOf(counts)
  const places = new Map<number, number>()
  for (const colour of counts.keys()) places.set(colour, nearest(colour, palette))
  // Each line begins with its filter; lines of places in a palette are smallest without one.
  const lines = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      lines[y * (width + 1) + x + 1] = places.get(colourAt(rgb, (y * width + x) * 3)) ?? 0
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8)
  const table = Buffer.from(palette.flatMap(colour => [colour >> 16, (colour >> 8) & 255, colour & 255]))
  const parts = [chunk('IHDR', head), chunk('PLTE', table), chunk('IDAT', deflateSync(lines, { level: 9 }))]
  return Buffer.concat([SIGNATURE, ...parts, chunk('IEND', Buffer.alloc(0))])
}

/** The most frequent colours, without those that are nearly the same as a more frequent one: a thin line's colour stays. */
function paletteOf(counts: ReadonlyMap<number, number>): number[] {
  const palette: number[] = []
  for (const [colour] of [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])) {
    if (palette.length === COLOURS) break
    if (palette.every(one => distance(one, colour) > SAME)) palette.push(colour)
  }
  return palette
}

/** The square of the distance of two colours. */
function distance(one: number, other: number): number {
  const parts = [16, 8, 0].map(shift => ((one >> shift) & 255) - ((other >> shift) & 255))
  return parts.reduce((sum, part) => sum + part * part, 0)
}

function colourAt(rgb: Uint8Array, at: number): number {
  return ((rgb[at] ?? 0) << 16) | ((rgb[at + 1] ?? 0) << 8) | (rgb[at + 2] ?? 0)
}

function nearest(colour: number, palette: readonly number[]): number {
  let best = 0
  let least = Number.POSITIVE_INFINITY
  palette.forEach((one, place) => {
    const far = distance(one, colour)
    if (far < least) [best, least] = [place, far]
  })
  return best
}

function chunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, check])
}

function read(png: Buffer): Pixels {
  const data: Buffer[] = []
  let [width, height, channels] = [0, 0, 0]
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const name = png.toString('latin1', at + 4, at + 8)
    const body = png.subarray(at + 8, at + 8 + length)
    if (name === 'IDAT') data.push(body)
    if (name === 'IHDR') {
      ;[width, height] = [body.readUInt32BE(0), body.readUInt32BE(4)]
      channels = body[8] === 8 && body[12] === 0 ? (CHANNELS[body[9] ?? 0] ?? 0) : 0
      if (channels === 0) throw new Error('this PNG is none of Chromium')
    }
    at += length + 12
  }
  const lines = unfiltered(inflateSync(Buffer.concat(data)), { stride: width * channels, height, channels })
  const rgb = new Uint8Array(width * height * 3)
  for (let pixel = 0; pixel < width * height; pixel += 1)
    rgb.set(lines.subarray(pixel * channels, pixel * channels + 3), pixel * 3)
  return { width, height, rgb }
}

interface Lines {
  /** Bytes in a line. */
  stride: number
  height: number
  channels: number
}

/** Undoes the filters of PNG (ISO/IEC 15948, 9.2). */
function unfiltered(raw: Buffer, { stride, height, channels }: Lines): Uint8Array {
  const lines = new Uint8Array(stride * height)
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)] ?? 0
    for (let x = 0; x < stride; x += 1) {
      const own = y * stride + x
      const left = x >= channels ? (lines[own - channels] ?? 0) : 0
      const up = y > 0 ? (lines[own - stride] ?? 0) : 0
      const corner = x >= channels && y > 0 ? (lines[own - stride - channels] ?? 0) : 0
      lines[own] = (raw[y * (stride + 1) + x + 1] ?? 0) + foretold(filter, { left, up, corner })
    }
  }
  return lines
}

function foretold(filter: number, { left, up, corner }: { left: number; up: number; corner: number }): number {
  if (filter === 1) return left
  if (filter === 2) return up
  if (filter === 3) return (left + up) >> 1
  if (filter !== 4) return 0
  const guess = left + up - corner
  const [toLeft, toUp, toCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  return toLeft <= toUp && toLeft <= toCorner ? left : toUp <= toCorner ? up : corner
}
