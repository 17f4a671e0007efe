// `--only`: which rows of a file are sent.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { keepOnly, listingOf, shortfallOf } from '../../../../producers/rows/only/list.ts'
import { readOnly, readReferences } from '../../../../producers/rows/only/read.ts'
import { type Row, rejectRow, skipRow } from '../../../../producers/rows/record.ts'

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tokenmill-only-'))
})
afterAll(() => rm(dir, { recursive: true, force: true }))

async function listOf(text: string) {
  const file = join(dir, 'only.txt')
  await writeFile(file, text)
  return readOnly(file)
}

const OF_OWNER = { provider: 'shop', providerAccount: 'eu', customerId: 'cus_1', cardId: 'c_1' }
const row = (more: Partial<Row>): Row => ({ ...rejectRow(7, 'expiry_format', 'c_1'), rejected: undefined, ...more })
const isKept = async (text: string, given: Row) => keepOnly(given, await listOf(text)).skipped === undefined

it('reads one reference a line, whatever ends the lines, with or without a header', async () => {
  const plain = await listOf('a\nb\n')
  expect(plain.shapes).toEqual([{ members: ['reference'], keys: new Set(['a', 'b']) }])
  for (const text of ['reference\r\nb\r\na\r\n', '\uFEFFreference\na\n\nb', 'b\na\na\n'])
    expect((await listOf(text)).sha256).toBe(plain.sha256)
  expect((await listOf('a\nc\n')).sha256).not.toBe(plain.sha256)
})

it('refuses a list that names nothing, and one that is not there', async () => {
  await expect(listOf('reference\n\n')).rejects.toThrow(/names no reference/)
  await expect(readOnly(join(dir, 'none'))).rejects.toThrow(/cannot be read \(ENOENT\)/)
})

it('refuses a table whose columns are not separated by commas, because no row would be listed', async () => {
  for (const text of ['reference;customer\na;cus_1\n', 'line\treference\n2\ta\n', '"customer"|"account"\ncus_1|eu\n'])
    await expect(listOf(text), text).rejects.toThrow(/columns of .* are not separated by commas.*Write the list as CSV/)
})

it('reads a table of one column in quotes without its quotes', async () => {
  for (const [key, text] of [
    ['reference', '"reference"\n"A-1"\n'],
    ['customer', '\uFEFF"customer"\r\n"A-1"\r\n'],
  ] as const)
    expect((await listOf(text)).shapes).toEqual([{ members: [key], keys: new Set(['A-1']) }])
  for (const text of ['"A-1"', '"A-1"\n"A-2"\n'])
    await expect(listOf(text), text).rejects.toThrow(/table without a column reference or customer.*without quotes/)
})

it('refuses a row of a table that names nothing, with its line', async () => {
  await expect(listOf('customer,reference\ncus_1,a\n,\n')).rejects.toThrow(/line 3 names no reference/)
})

it('reads references of our own results as they were before they were guarded against formulas', async () => {
  const results = "line,reference,outcome,code,reason\n2,'-abc,REJECTED,400,pan_luhn\n3,'@x,FAILED,500,internal\n"
  for (const reference of ['-abc', '@x', "'-abc"])
    expect(await isKept(results, row({ reference })), reference).toBe(true)
  expect(await isKept("reference,since\n'-abc,2024\n", row({ reference: '-abc' }))).toBe(false)
})

it('reads a list of ids alone only where nothing else is in it', async () => {
  const file = join(dir, 'ids.txt')
  const ids = async (text: string) => {
    await writeFile(file, text)
    return [...(await readReferences(file))]
  }
  expect(await ids('reference\na\nb\n')).toEqual(['a', 'b'])
  expect(await ids('a,1\nb\n')).toEqual(['a,1', 'b'])
  expect(await ids('"reference"\n"A-1"\n\n"A ""2"""\nA-3\n')).toEqual(['A-1', 'A "2"', 'A-3'])
  const wrong = [
    'customer,reference\n,a\ncus_1,b\n',
    '{"reference":"a"}\n',
    'customer\ncus_1\n',
    '"customer"\n"cus_1"\n',
  ]
  const others = ['reference;name\nA-1;x\n', 'name\treference\nx\tA-1\n', '"reference"|"name"\n"A-1"|"x"\n']
  for (const text of [...wrong, ...others, '"A-1"\n"A-2"\n'])
    await expect(ids(text), text).rejects.toThrow(/is not a list of ids alone.*one id on each line/)
})

it('skips what is not listed, and keeps what cannot be read', async () => {
  const list = await listOf('wanted\n')
  const wanted = rejectRow(1, 'expiry_format', 'wanted')
  const unread = rejectRow(2, 'row_fields')
  expect(keepOnly(wanted, list)).toBe(wanted)
  expect(keepOnly(unread, list)).toBe(unread)
  expect(keepOnly(rejectRow(3, 'expiry_format', 'other'), list)).toMatchObject({ skipped: 'not_listed', json: '' })
  expect(keepOnly(skipRow(4, 'no_card'), list)).toMatchObject({ skipped: 'no_card' })
})

it('lists customers: after a header line, in a column of CSV, and as a member of NDJSON', async () => {
  const listed = row({ owner: OF_OWNER })
  const other = row({ owner: { ...OF_OWNER, customerId: 'cus_2' } })
  for (const text of ['customer\ncus_1\n', 'since,"customer"\n2024,"cus_1"\n', '{"customer":"cus_1","since":2024}\n']) {
    expect(await isKept(text, listed), text).toBe(true)
    expect(await isKept(text, other), text).toBe(false)
    expect((await listOf(text)).namesOwners).toBe(true)
    expect((await listOf(text)).sha256).toBe((await listOf('customer\ncus_1\n')).sha256)
  }
  expect((await listOf('customer\ncus_1\n')).sha256).not.toBe((await listOf('cus_1\n')).sha256)
  expect(await isKept('customer\ncus_1\n', row({ owner: 'none' }))).toBe(false)
})

it('skips a rejected row of another customer, and keeps one whose customer is not known', async () => {
  const rejected = rejectRow(3, 'expiry_format')
  const list = await listOf('customer\ncus_1\n')
  expect(keepOnly({ ...rejected, owner: { ...OF_OWNER, customerId: 'x' } }, list).skipped).toBe('not_listed')
  expect(keepOnly({ ...rejected, owner: 'unknown' }, list).skipped).toBeUndefined()
})

it('lists a reference of one customer or account where an entry names both', async () => {
  const entry = '{"reference":"c_1","customer":"cus_1","account":"eu","change":"moved","line":2}\n'
  expect(await isKept(entry, row({ owner: OF_OWNER }))).toBe(true)
  expect(await isKept(entry, row({ owner: { ...OF_OWNER, providerAccount: 'us' } }))).toBe(false)
  expect(await isKept('reference,account\nc_1,eu\n', row({ owner: OF_OWNER }))).toBe(true)
  expect(await isKept('reference,account\nc_1,us\n', row({ owner: OF_OWNER }))).toBe(false)
})

it('lists rows without a reference by their place, of one file only', async () => {
  const sha = (digit: string) => digit.repeat(64)
  const place = `{"change":"added","line":7,"input_sha256":"${sha('a')}"}\n`
  const list = await listOf(place)
  expect(list).toMatchObject({ inputSha256: sha('a'), namesOwners: false })
  const unnamed = { ...row({}), reference: undefined }
  expect(keepOnly(unnamed, list).skipped).toBeUndefined()
  expect(keepOnly({ ...unnamed, line: 8 }, list).skipped).toBe('not_listed')
  await expect(listOf(place + place.replace(sha('a'), sha('b')))).rejects.toThrow(/several files/)
  await expect(listOf('{"line":7}\n')).rejects.toThrow(/line 1 names no reference/)
})

it('leaves out what a plan says is removed', async () => {
  const list = await listOf('{"reference":"c_1","change":"changed"}\n{"reference":"c_9","change":"removed"}\n')
  expect(list.shapes).toEqual([{ members: ['reference'], keys: new Set(['c_1']) }])
})

it('reads a list as people save it: sep=, blanks at the ends of lines, another delimiter that it names', async () => {
  const plain = await listOf('a\nb\n')
  for (const text of [
    'a  \nb\t\n',
    'reference \r\na \r\n \r\nb\r\n',
    'sep=;\r\nreference;name\r\na;x\r\nb ;y\r\n',
    '\uFEFF"sep=;"\n"name";"reference"\n"x";"a"\n"y";"b"\n',
    'sep=\t\nreference\tname\na\tx\nb\ty\n',
    'sep=,\nreference\na\nb\n',
    'name, reference\nx,a\ny,b\n',
  ])
    expect((await listOf(text)).sha256, text).toBe(plain.sha256)
  await expect(listOf('sep=;\nreference,name\na,x\n')).rejects.toThrow(/not separated by/)
})

it('refuses UTF-16 in words, with its mark and without', async () => {
  const text = 'reference\nabcdefgh\n'
  for (const bytes of [
    Buffer.from(`\uFEFF${text}`, 'utf16le'),
    Buffer.from(text, 'utf16le'),
    Buffer.from(`\uFEFF${text}`, 'utf16le').swap16(),
  ]) {
    const file = join(dir, 'utf16.txt')
    await writeFile(file, bytes)
    await expect(readOnly(file)).rejects.toThrow(/is UTF-16.*UTF-8/)
    await expect(readReferences(file)).rejects.toThrow(/is UTF-16.*UTF-8/)
  }
})

it('tells how much of it the rows have, and the first entries that none has', async () => {
  const list = await listOf('c_1\nlost\n4111111111111111\n')
  expect(listingOf(list)).toMatchObject({ listed: 3, found: 0 })
  keepOnly(row({}), list)
  keepOnly(row({}), list)
  keepOnly(row({ reference: 'other' }), list)
  expect(listingOf(list)).toEqual({ listed: 3, found: 1, missing: ['"lost"', '"****************"'] })
  expect(shortfallOf(listingOf(list))).toBe('--only: listed 3, found 1; not found (first): "lost", "****************"')
  expect(shortfallOf({ listed: 1, found: 1, missing: [] })).toBeUndefined()
  keepOnly(skipRow(3, 'no_card', 'lost'), list)
  expect(listingOf(list).found).toBe(2)
})

it('finds the entries of several columns, of owners, and of our own results', async () => {
  const pairs = await listOf('customer,reference\ncus_1,c_1\ncus_2,c_1\n')
  keepOnly(row({ owner: OF_OWNER }), pairs)
  expect(listingOf(pairs)).toEqual({ listed: 2, found: 1, missing: ['"c_1" "cus_2"'] })
  const results = await listOf(
    "line,reference,outcome,code,reason\n2,'-abc,REJECTED,400,pan_luhn\n3,x,FAILED,500,internal\n",
  )
  expect(listingOf(results)).toMatchObject({ listed: 2, found: 0 })
  keepOnly(row({ reference: '-abc' }), results)
  expect(listingOf(results)).toEqual({ listed: 2, found: 1, missing: ['"x"'] })
})
