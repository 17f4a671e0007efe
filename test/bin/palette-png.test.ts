// A picture with a palette has the colours of the one that it was made of, whatever filters Chromium chose for its lines.
import { crc32, deflateSync, inflateSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { withPalette } from '../../bin/pictures/palette-png.ts'

type Colour = readonly [red: number, green: number, blue: number]

const WIDTH = 3
/** A line for each filter of PNG. */
const LINES: readonly (readonly Colour[])[] = Array.from({ length: 5 }, (_, y) =>
  Array.from({ length: WIDTH }, (_, x): Colour => [(x * 90 + y) % 256, (y * 60 + x * 7) % 256, 255 - x * y]),
)

function chunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name), data])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, check])
}

function picture(lines: Buffer, { height = LINES.length, interlaced = 0 } = {}): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(WIDTH, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 2, 0, 0, interlaced], 8)
  const parts = [chunk('IHDR', head), chunk('IDAT', deflateSync(lines)), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...parts])
}

/** The lines, each with the filter of its number (ISO/IEC 15948, 9.2). */
function filtered(): Buffer {
  const flat = LINES.map(line => line.flat())
  return Buffer.concat(
    flat.map((line, y) => {
      const above = flat[y - 1] ?? []
      const bytes = line.map((value, x) => {
        const [left, up, corner] = [line[x - 3] ?? 0, above[x] ?? 0, x < 3 ? 0 : (above[x - 3] ?? 0)]
        const nearest = [left, up, corner].toSorted(
          (a, b) => Math.abs(left + up - corner - a) - Math.abs(left + up - corner - b),
        )[0]
        return value - ([0, left, up, Math.floor((left + up) / 2), nearest][y] ?? 0)
      })
      return Buffer.from([y, ...bytes])
    }),
  )
}

/** The parts of a PNG by their names. */
function partsOf(png: Buffer): Record<string, Buffer> {
  const parts: Record<string, Buffer> = {}
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12)
    parts[png.toString('latin1', at + 4, at + 8)] = png.subarray(at + 8, at + 8 + png.readUInt32BE(at))
  return parts
}

it('keeps each pixel', () => {
  const { IHDR, PLTE, IDAT } = partsOf(withPalette(picture(filtered())))
  expect([IHDR?.readUInt32BE(0), IHDR?.readUInt32BE(4), IHDR?.[9]]).toEqual([WIDTH, LINES.length, 3])
  const places = inflateSync(IDAT ?? Buffer.alloc(0))
  const colourOf = (place: number) => [...(PLTE ?? Buffer.alloc(0)).subarray(place * 3, place * 3 + 3)]
  const read = LINES.map((_, y) =>
    Array.from({ length: WIDTH }, (_, x) => colourOf(places[y * (WIDTH + 1) + x + 1] ?? 0)),
  )
  expect(read).toEqual(LINES)
})

it('takes no picture that it can not read', () => {
  expect(() => withPalette(picture(filtered(), { interlaced: 1 }))).toThrow('none of Chromium')
})
