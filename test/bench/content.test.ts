// The mixes of the bench: the same bytes in every run and checkout, and in each only the rows refused that are meant to be.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { linesOf, MIXES, namedMixes } from '../../bench/content/mixes.ts'
import { readRows } from '../../producers/rows/file-rows.ts'
import { parseProfile } from '../../producers/rows/profile/profile.ts'
import { panFault } from '../../src/token/pan.ts'

const ROWS = 2_000
const WRONG = 1 / 100

describe('a mix of content', () => {
  it('has the same bytes as ever', () => {
    const digests = Object.entries(MIXES).map(([name, { file, before, profile }]) => {
      const hash = createHash('sha256').update(JSON.stringify(profile ?? null))
      for (const line of linesOf(file, ROWS)) hash.update(line)
      if (before) for (const line of linesOf(before.file, ROWS, before.every)) hash.update(line)
      return [name, hash.digest('hex').slice(0, 16)]
    })
    expect(Object.fromEntries(digests)).toMatchInlineSnapshot(`
      {
        "base": "614b2da4059a29b5",
        "dry-run": "614b2da4059a29b5",
        "format-fixed": "fb0caf5e310bc525",
        "format-gzip": "485b8c9d16b82cb4",
        "format-json": "bf9babc93d9f4f71",
        "format-ndjson": "abde7ebde1d7ef2e",
        "format-quoted": "06135bc62e6e343d",
        "known": "0bbb37bb9a560af3",
        "members": "ea84cdf3f0dce54f",
        "names": "c3e8a201f8788609",
        "names-apostrophe": "f465c0135a8ec005",
        "names-arabic": "01b33c0e0611f33d",
        "names-cyrillic": "2638f90c29d7b2f0",
        "names-devanagari": "f5f6e16955e46ff3",
        "names-digit": "f34c2b74f94e0114",
        "names-emoji": "dd99b74c89a4447f",
        "names-greek": "5e5450cea24019af",
        "names-han": "24ec2e8fd01ae3f7",
        "names-hangul": "fbfd5d36408c4327",
        "names-hebrew": "fe9ce0536c782262",
        "names-kana": "697abf555b027117",
        "names-latin": "4ffbd8f8992ca1ec",
        "names-thai": "cad4e5758d000534",
        "names-vietnamese-nfc": "85b98a637e41523b",
        "names-vietnamese-nfd": "895bd94c2d5cad63",
        "newest": "049079b77e503036",
        "owners-adyen": "bb7a58ac8cfa9740",
        "owners-braintree": "9cf8dd234a12f330",
        "owners-numeric": "7526e0ceebd54299",
        "owners-short": "756ba4a96b45ff0a",
        "owners-stripe": "57bcc26a8dbec211",
        "owners-uuid": "981ec97a06f53469",
        "reference-customer": "ad457ba2067b9605",
        "reference-digits": "cd39a09a045337a7",
        "reference-unicode": "1ce11db08164baca",
        "reference-urn": "4da468d6598d0ae3",
        "reference-uuid": "abd47e2ee1538340",
        "refused": "244abae0cf594a3e",
        "relink": "8ba95aa48edee16a",
        "update": "2d0a8bed0389f96f",
      }
    `)
  })

  it.each(Object.entries(MIXES))('has no wrong row that is not meant, and no owner twice: %s', async (name, mix) => {
    const owners = new Set<string>()
    let [rows, rejected] = [0, 0]
    const parts = readRows(Readable.from([...linesOf(mix.file, ROWS)].map(line => Buffer.from(line))), {
      format: mix.file.extension === 'ndjson' ? 'ndjson' : 'csv',
      recordKind: 'token-create',
      profile: mix.profile && parseProfile(name, JSON.stringify(mix.profile)),
      timeColumn: mix.args?.includes('--source-time') ? 'updated_at' : undefined,
      owners: true,
    })
    for await (const part of parts)
      for (const { rejected: reason, number, owner } of part) {
        rows += 1
        if (reason !== undefined || panFault(number) !== undefined) rejected += 1
        if (owner !== undefined) owners.add(JSON.stringify(owner))
      }
    expect(rows).toBe(ROWS)
    expect(rejected).toBe(name === 'refused' ? ROWS * WRONG : 0)
    expect(owners.size).toBe(mix.profile?.on_file ? ROWS : 0)
  })

  it('is named alone, with all, or in a group', () => {
    expect(namedMixes('base,base')).toEqual(['base'])
    const groups = ['all', 'parts', 'formats'].flatMap(namedMixes)
    expect(groups.sort()).toEqual(Object.keys(MIXES).sort())
    expect(() => namedMixes('bases')).toThrow('there is no mix bases')
  })
})
