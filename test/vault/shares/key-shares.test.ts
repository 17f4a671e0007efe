import { createSecretKey, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { combine } from 'shamir-secret-sharing'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/secret.ts'
import { kekIdOf } from '../../../src/vault/kek/file.ts'
import { joinShares, type NamedShare, splitKey } from '../../../src/vault/shares/key-shares.ts'
import { isUnreadable, type KeyShare, linesOf, readLine, readShare } from '../../../src/vault/shares/share-text.ts'

const makeKey = () => createSecretKey(randomBytes(32))
const named = (shares: readonly KeyShare[]): NamedShare[] =>
  shares.map(share => ({ name: `share-${share.index}`, share }))

/** Every choice of `count` of the values, in their order. */
function choices<T>(values: readonly T[], count: number): T[][] {
  if (count === 0) return [[]]
  return values.flatMap((value, at) => choices(values.slice(at + 1), count - 1).map(rest => [value, ...rest]))
}

// A second implementation of the arithmetic, without tables: the polynomial x^8 + x^4 + x^3 + x + 1, and Lagrange
// interpolation at zero.
function times(a: number, b: number): number {
  let [left, right, product] = [a, b, 0]
  while (right > 0) {
    if (right & 1) product ^= left
    left = (left << 1) ^ (left & 0x80 ? 0x11b : 0)
    right >>= 1
  }
  return product
}
const inverse = (a: number) => Array.from({ length: 255 }, (_, at) => at + 1).find(b => times(a, b) === 1) ?? 0
function joinSlowly(points: readonly Buffer[]): Buffer {
  const xOf = (point: Buffer) => point.at(-1) ?? 0
  const secret = Buffer.alloc((points[0]?.length ?? 1) - 1)
  for (const point of points) {
    const weight = points
      .filter(other => other !== point)
      .reduce((product, other) => times(product, times(xOf(other), inverse(xOf(other) ^ xOf(point)))), 1)
    for (const at of secret.keys()) secret[at] = (secret[at] ?? 0) ^ times(point[at] ?? 0, weight)
  }
  return secret
}

describe('shares of a key', () => {
  it('restore it by any three of five, in any order, and by more', async () => {
    const key = makeKey()
    const shares = await splitKey(key, { threshold: 3, of: 5 })
    for (const count of [3, 4, 5])
      for (const chosen of choices(named(shares), count)) {
        const joined = await joinShares(chosen.toReversed())
        expect('key' in joined && joined.key.equals(key)).toBe(true)
      }
  })

  it('are refused when they are fewer than the threshold, and say how many are needed', async () => {
    const shares = named(await splitKey(makeKey(), { threshold: 3, of: 5 }))
    for (const chosen of choices(shares, 2))
      expect(await joinShares(chosen)).toEqual({ refused: 'too_few', names: chosen.map(one => one.name), threshold: 3 })
    expect(await joinShares([])).toMatchObject({ refused: 'too_few' })
  })

  it('fewer than the threshold are consistent with every key: for any key there is a third share', async () => {
    const key = makeKey().export()
    const [one, two] = (await splitKey(createSecretKey(key), { threshold: 3, of: 5 })).map(share =>
      share.bytes.reveal(),
    )
    if (!one || !two) throw new Error('there are five')
    const x = [1, 2, 3].find(value => value !== one.at(-1) && value !== two.at(-1)) ?? 0
    for (const wished of [Buffer.alloc(32), Buffer.alloc(32, 255), randomBytes(32)]) {
      // A third share at x exists for every key: it is on the polynomial through that key at zero and both shares.
      const atZero = Buffer.from([...wished, 0])
      const shifted = [atZero, one, two].map(point => Buffer.from([...point.subarray(0, 32), (point.at(-1) ?? 0) ^ x]))
      const third = Buffer.from([...joinSlowly(shifted), x])
      expect(Buffer.from(await combine([one, two, third].map(point => Uint8Array.from(point))))).toEqual(wished)
    }
  })

  it('are joined alike by a second implementation, and are never alike twice', async () => {
    for (const [threshold, of] of [
      [2, 2],
      [2, 16],
      [3, 5],
      [16, 16],
    ] as const) {
      const key = makeKey()
      const shares = await splitKey(key, { threshold, of })
      const points = shares.map(share => share.bytes.reveal())
      expect(joinSlowly(points.slice(of - threshold))).toEqual(key.export())
      expect(new Set(points.map(point => point.toString('hex'))).size).toBe(of)
      expect(points.every(point => point.length === 33 && point.at(-1) !== 0)).toBe(true)
    }
    const key = makeKey()
    const [first, second] = [await splitKey(key, { threshold: 2, of: 2 }), await splitKey(key, { threshold: 2, of: 2 })]
    expect(first[0]?.setId).not.toBe(second[0]?.setId)
    expect(first[0]?.bytes.reveal()).not.toEqual(second[0]?.bytes.reveal())
  })

  it('that another implementation made (npm `shamir` 0.7.1) are joined', async () => {
    const key = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1dfeff', 'hex')
    const made = [
      '78200953c368057a59cc8fb48f884a73406be6f556a5fd446ecc57a29c156d33',
      '66fd5d4152dec13906df7b06a5d20a846657f0ebe3c031423075d55d42b0dcb6',
      '1edc561195b3c244571afeb926574ef8362d040da170da1146a098e4c2b84f7a',
      'a22c832289acba4692b973aaa3bd00d589638944362add5c7598d02baf9ec668',
      'da0d88724ec1b93bc37cf615203844a9d9197da2749a360f034d9d922f9655a4',
    ].map((hex, at) => ({
      setId: '0011223344556677',
      threshold: 3,
      of: 5,
      index: at + 1,
      kekId: kekIdOf(createSecretKey(key)),
      bytes: new Secret(Buffer.from([...Buffer.from(hex, 'hex'), at + 1])),
    }))
    for (const chosen of choices(named(made), 3)) {
      const joined = await joinShares(chosen)
      expect('key' in joined && joined.key.export()).toEqual(key)
    }
  })

  it('of different sets, even of one key, are refused', async () => {
    const key = makeKey()
    const [one, other] = [await splitKey(key, { threshold: 2, of: 3 }), await splitKey(key, { threshold: 2, of: 3 })]
    const mixed = named([...one.slice(0, 1), ...other.slice(1, 2)])
    expect(await joinShares(mixed)).toMatchObject({ refused: 'mixed', names: ['share-1', 'share-2'] })
  })

  it('given twice count once', async () => {
    const shares = named(await splitKey(makeKey(), { threshold: 2, of: 3 })).slice(0, 1)
    const again = [...shares, ...shares.map(({ share }) => ({ name: 'a copy', share }))]
    expect(await joinShares(again)).toMatchObject({ refused: 'twice', names: ['share-1', 'a copy'] })
  })

  it('of which one is forged give no key', async () => {
    const shares = await splitKey(makeKey(), { threshold: 3, of: 5 })
    const forged = shares.map(share =>
      share.index === 2
        ? {
            ...share,
            bytes: new Secret(Buffer.from(share.bytes.reveal().map((byte, at) => (at === 7 ? byte ^ 1 : byte)))),
          }
        : share,
    )
    expect(await joinShares(named(forged).slice(0, 3))).toMatchObject({ refused: 'another_key' })
  })

  it('print as secrets', async () => {
    const [share] = await splitKey(makeKey(), { threshold: 2, of: 2 })
    expect(inspect(share, { depth: 9, showHidden: true })).toContain('[secret]')
    expect(inspect(share, { depth: 9, showHidden: true })).not.toContain('Buffer')
  })
})

describe('the text of a share', () => {
  const makeText = async () => {
    const [share] = await splitKey(makeKey(), { threshold: 3, of: 5 })
    if (!share) throw new Error('there are five')
    return { share, lines: linesOf(share) }
  }

  it('holds all of it, and is read back as people type it', async () => {
    const { share, lines } = await makeText()
    const typed = lines.map(line => line.slice(2).toLowerCase().replaceAll('0', 'o').replaceAll('1', 'l'))
    const texts = [lines.join('\n'), `# of the vault\r\n${lines.join('\r\n')}\r\n`, typed.join('\n')]
    for (const text of texts) {
      const read = readShare(text)
      if (isUnreadable(read)) throw new Error('it is right')
      expect({ ...read, bytes: read.bytes.reveal() }).toEqual({ ...share, bytes: share.bytes.reveal() })
    }
  })

  it('has each single wrong letter, each swap of neighbours and each swap of lines found, in its line', async () => {
    const { lines } = await makeText()
    for (const [at, line] of lines.entries()) {
      expect(readLine(line, at + 2)).toBeUndefined()
      for (let place = 3; place < line.length; place++) {
        if (line[place] === ' ') continue
        const wrong = `${line.slice(0, place)}${line[place] === 'A' ? 'B' : 'A'}${line.slice(place + 1)}`
        expect(readShare(lines.with(at, wrong).join('\n'))).toEqual({ lines: [at + 1] })
        const [left, right] = [line[place], line[place + 1]]
        if (!right || right === ' ' || left === right) continue
        const swapped = `${line.slice(0, place)}${right}${left}${line.slice(place + 2)}`
        expect(readLine(swapped, at + 1)).toBeUndefined()
      }
    }
  })

  it('is no share with a line too few, a line too many, or lines of another share', async () => {
    const { lines } = await makeText()
    const other = await makeText()
    expect(readShare(lines.slice(0, 5).join('\n'))).toEqual({ lines: [6] })
    expect(readShare([...lines, lines[5]].join('\n'))).toEqual({ lines: [] })
    expect(readShare([...lines.slice(0, 5), ...other.lines.slice(5)].join('\n'))).toEqual({ lines: [] })
    expect(readShare('')).toEqual({ lines: [1, 2, 3, 4, 5, 6] })
  })
})
