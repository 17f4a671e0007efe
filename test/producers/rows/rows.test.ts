import { describe, expect, it } from 'vitest'
import { FileError } from '../../../producers/rows/file-error.ts'
import { countRows, type RowOptions, readRows } from '../../../producers/rows/file-rows.ts'
import { SchemeToken } from '../../../src/job/scheme-token.ts'
import { RECORD_REQUESTS, RecordHead } from '../../../src/job/token-batch.ts'
import { collect, inPieces } from './bytes.ts'
import { profile } from './profile/profiled.ts'

const PAN = '4111111111111111'
const HEADER = 'reference,card_number,expiry_month,expiry_year,cardholder_name'
const CSV: RowOptions = { format: 'csv', recordKind: 'token-create' }
const NDJSON: RowOptions = { format: 'ndjson', recordKind: 'token-create' }

const read = (text: string, options: RowOptions = CSV) => collect(readRows(inPieces(text), options))
const records = async (text: string, options?: RowOptions) =>
  (await read(text, options)).map(row => JSON.parse(row.json))
const reasons = async (text: string, options?: RowOptions) => (await read(text, options)).map(row => row.rejected)
const failure = async (text: string, options: RowOptions = CSV) => {
  const error = await read(text, options).then(
    () => undefined,
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(FileError)
  // What one reading refuses the other refuses with the same words.
  await expect(countRows(inPieces(text), options)).rejects.toThrow((error as FileError).message)
  return error as FileError
}

describe('readRows', () => {
  it('writes the record that travels in the block', async () => {
    const [row] = await read(`${HEADER}\nc-1,${PAN},5,27,J. DOE\n`)
    expect(row).toEqual({
      line: 2,
      reference: 'c-1',
      rejected: undefined,
      number: PAN,
      echo: undefined,
      json: `{"line":2,"reference":"c-1","request":{"card":{"cardNumber":"${PAN}","expiryMonth":5,"expiryYear":2027,"cardholderName":"J. DOE"}}}`,
    })
  })

  it('writes records that the schemas of every record kind take', async () => {
    const files: readonly (readonly [RowOptions['recordKind'], string])[] = [
      [
        'token-create',
        `${HEADER},sequence_number,card_brand,token_type,token_expiry_date\nr,${PAN},05,2027,É "X",1,VISA,REUSE,2030-01-31\n`.replace(
          'É "X"',
          '"É ""X"""',
        ),
      ],
      ['token-create', `encrypted_card,public_key_alias\n"-----BEGIN\n\nabc",key-1\n`],
      [
        'token-update',
        'id,cardholder_name,cardholder_email,expiry,token_expiry_date,scheme_token_action\nt0123456789ABCDEF,A,a@example.org,05/27,2030-01-31,DELETE\n',
      ],
      ['token-update', `id,card_number,expiry,cardholder_name\nt0123456789ABCDEF,${PAN},0527,B\n`],
      ['token-lifecycle', 'reference,id,action\nx,t0123456789ABCDEF,SUSPEND\n'],
      ['scheme-token', 'id,action\nt0123456789ABCDEF,ACTIVATE\n'],
    ]
    for (const [recordKind, text] of files) {
      const [record] = await records(text, { format: 'csv', recordKind })
      expect(RecordHead.parse(record).rejected).toBeUndefined()
      const schema = recordKind === 'scheme-token' ? SchemeToken : RECORD_REQUESTS[recordKind]
      schema.parse(record.request)
    }
  })

  it('puts the card of an update into the card, its other fields beside it', async () => {
    const text = `id,card_number,expiry,cardholder_name,token_expiry_date\nt1,${PAN},2027-05,B,2031-01-01\nt2,,12/2028,C,\n`
    expect((await records(text, { ...CSV, recordKind: 'token-update' })).map(record => record.request)).toEqual([
      {
        id: 't1',
        token_expiry_date: '2031-01-01',
        card: { cardNumber: PAN, expiryMonth: 5, expiryYear: 2027, cardholderName: 'B' },
      },
      { id: 't2', card_holder_name: 'C', expiry_month: 12, expiry_year: 2028 },
    ])
  })

  it('leaves empty cells out', async () => {
    const [record] = await records(`${HEADER}\n,${PAN},,,\n`)
    expect(record).toEqual({ line: 2, request: { card: { cardNumber: PAN } } })
  })

  it.each(['05/26', '5/26', '0526', '05/2026', '2026-05', '2026-5'])('takes the expiry %s', async expiry => {
    const [record] = await records(`card_number,expiry\n${PAN},${expiry}\n`)
    expect(record.request.card).toEqual({ cardNumber: PAN, expiryMonth: 5, expiryYear: 2026 })
  })

  it.each([
    '44563',
    'Mai 26',
    'May-26',
    '526',
    '13/26',
    '00/26',
    '2026-13',
    '05/026',
    '05-26',
    '١٢/26',
    '1/5/26',
    '2.6E1',
    '05/26 ',
  ])('rejects the expiry %s, for a spreadsheet may have made it', async expiry => {
    expect(await records(`reference,card_number,expiry\nx,${PAN},${expiry}\n`)).toEqual([
      { line: 2, reference: 'x', rejected: { reason: 'expiry_format' } },
    ])
  })

  it.each([
    ['13', '2027'],
    ['0', '27'],
    ['5', '027'],
    ['5', '20277'],
    ['May', '2027'],
    ['5', '1899'],
    ['5.0', '2027'],
  ])('rejects month %s and year %s', async (month, year) => {
    expect(await reasons(`${HEADER}\nx,${PAN},${month},${year},A\n`)).toEqual(['expiry_format'])
  })

  it.each([
    PAN,
    `id ${PAN}`,
    '4111 1111 1111 1111',
    '4111-1111-1111-1111',
    '4.111.111.111.111.111',
    '４１１１１１１１１１１１１１１１',
  ])('rejects the reference %s, which holds the card number of its row, and nowhere repeats it', async reference => {
    const [row] = await read(`${HEADER}\n${reference},${PAN},5,27,A\n`)
    expect(row).toMatchObject({ rejected: 'reference_pan', reference: undefined })
    expect(row?.json).toBe('{"line":2,"rejected":{"reason":"reference_pan"}}')
  })

  it('finds the card number also where the two columns were exchanged', async () => {
    expect(await reasons(`${HEADER}\n${PAN},cust-17,5,27,A\n`)).toEqual(['reference_pan'])
  })

  it('takes a reference of digits that is not the card number', async () => {
    expect(await reasons(`${HEADER}\n1234567890123456,${PAN},5,27,A\n`)).toEqual([undefined])
  })

  it('rejects a reference that is too long or unprintable without repeating it', async () => {
    const long = 'r'.repeat(129)
    const rows = await read(`${HEADER}\n${long},${PAN},5,27,A\na\tb,${PAN},5,27,A\na\u2028b,${PAN},5,27,A\n`)
    expect(rows.map(row => [row.rejected, row.reference])).toEqual([
      ['field_length', undefined],
      ['field_characters', undefined],
      ['field_characters', undefined],
    ])
  })

  it('rejects control characters in a field, a line break in a name too, but tells the reference', async () => {
    const rows = await read(`${HEADER}\nx,${PAN},5,27,"A\nB"\ny,${PAN},5,27,A\u0007\n`)
    expect(rows.map(row => [row.line, row.rejected, row.reference])).toEqual([
      [2, 'field_characters', 'x'],
      [4, 'field_characters', 'y'],
    ])
  })

  it('never tells a reference of a row whose columns may be shifted', async () => {
    expect(await records(`${HEADER}\n${PAN},5,27,A\n`)).toEqual([{ line: 2, rejected: { reason: 'row_fields' } }])
  })

  it('tells the reference of a row that cannot be read as a whole, in the results and not in its chunk', async () => {
    const bytes = (name: string) => Buffer.from(`r-é,${PAN},5,27,${name}\n`, 'utf8')
    const latin1 = Buffer.from('M\u00fcller', 'latin1')
    const broken = Buffer.concat([bytes('x').subarray(0, -2), latin1, Buffer.from('\n')])
    const spoilt = Buffer.concat([Buffer.from(`r-\u00e9,${PAN},5,27,A\n`, 'latin1')])
    const text = Buffer.concat([Buffer.from(`${HEADER}\n`), broken, spoilt, bytes('\0'), broken.subarray(0, -1)])
    const rows = await collect(readRows(inPieces(text), CSV))
    expect(rows.map(row => [row.line, row.rejected, row.reference])).toEqual([
      [2, 'row_utf8', 'r-é'],
      [3, 'row_utf8', undefined],
      [4, 'row_nul', 'r-é'],
      [5, 'row_utf8', 'r-é'],
    ])
    expect(rows[0]?.json).toBe('{"line":2,"rejected":{"reason":"row_utf8"}}')
  })

  it('tells no reference of such a row that could be a card number', async () => {
    const text = Buffer.concat([Buffer.from(`${HEADER}\n${PAN},x,5,27,`), Buffer.from([0xfc]), Buffer.from('\n')])
    const rows = await collect(readRows(inPieces(text), CSV))
    expect(rows.map(row => [row.rejected, row.reference])).toEqual([['row_utf8', undefined]])
  })

  it('rejects a row with a clear and an encrypted card', async () => {
    expect(await reasons(`card_number,expiry,encrypted_card,public_key_alias\n${PAN},0527,abc,k\n`)).toEqual([
      'field_conflict',
    ])
  })

  it('rejects a record that its escapes make longer than 64 KiB', async () => {
    const text = `encrypted_card,public_key_alias\n"${'""'.repeat(32_000)}",k\n`
    expect(await reasons(text)).toEqual([undefined])
    const wider = `encrypted_card,public_key_alias\n"${'""\t\t'.repeat(16_000)}",k\n`
    expect(await reasons(wider)).toEqual(['row_too_long'])
  })
})

describe('the layout', () => {
  it('takes foreign columns by --map and drops others', async () => {
    const map = { custid: 'reference', pan: 'card_number', exp: 'expiry', secret: null }
    const text = `custid,pan,exp,secret,more\nx,${PAN},0527,s,m\n`
    const [row] = await read(text, { ...CSV, map, ignoreUnknown: true, echo: ['more', 'custid'] })
    expect(row).toMatchObject({ reference: 'x', echo: ['m', 'x'] })
    expect((await failure(text, { ...CSV, map })).message).toMatch(/^Line 1, column 5: unknown column "more"\./)
  })

  it('rejects a row whose echoed value holds its card number, and echoes nothing of it', async () => {
    const options = { ...CSV, ignoreUnknown: true, echo: ['note'] }
    const rows = await read(
      `${HEADER},note\na,${PAN},5,27,A,old 4111-1111-1111-1111\nb,${PAN},5,27,A,"two\nlines"\nc,${PAN},5,27,A,\u0001\n`,
      options,
    )
    expect(rows.map(row => [row.reference, row.rejected, row.echo])).toEqual([
      ['a', 'echo_pan', undefined],
      ['b', undefined, ['two\nlines']],
      ['c', 'field_characters', undefined],
    ])
  })

  it.each(['card_number', 'cvv', 'pan', 'cardholder_name'])('refuses to echo %s', async name => {
    const error = await failure(`${HEADER}\n`, { ...CSV, map: { pan: 'card_number' }, echo: [name] })
    expect([error.kind, error.status]).toEqual(['usage', 64])
    expect(error.message).toMatch(/would put card data into the results/)
  })

  it.each([
    [
      'a duplicate column',
      'reference,card_number,reference,expiry',
      /Line 1, column 3: "reference" stands in column 1 too/,
    ],
    ['an unknown column', `${HEADER},city`, /Line 1, column 6: unknown column "city"/],
    [
      'a column in other letters',
      'Card Number,expiry',
      /column 1: unknown column "Card Number"\. Write it card_number/,
    ],
    ['a security code', `${HEADER},cvv`, /Security codes must not be kept/],
    ['semicolons', HEADER.replaceAll(',', ';'), /by commas, not by semicolons/],
    ['a bare CR', `${HEADER}\rx\ry`.replaceAll(',', '_'), /not with a bare CR/],
    ['no card', 'reference,expiry', /Line 1: no column card_number or encrypted_card/],
    ['no expiry', 'reference,card_number', /card_number without expiry_month and expiry_year, or expiry/],
    ['half an expiry', 'card_number,expiry_month', /has only one of expiry_month/],
    ['two expiries', 'card_number,expiry,expiry_month,expiry_year', /expiry stands beside/],
    ['no alias', 'encrypted_card', /without a column public_key_alias/],
    ['a quote gone wrong', '"reference,card_number', /Line 1: the header has quotes that do not match/],
    ['a line of a million columns', 'a,'.repeat(1_000_000), /Line 1: the header is longer than 64 KiB/],
    ['NUL bytes', 'reference\0,card_number', /Line 1: the header holds NUL bytes/],
    ['no rows', HEADER, /The file holds no rows/],
    ['nothing at all', '', /The file holds no rows/],
    ['a ZIP file', 'PK\x03\x04....', /is a ZIP or Excel file/],
  ])('refuses a header with %s', async (_, header, words) => {
    const error = await failure(`${header}\n`)
    expect(error.message).toMatch(words)
  })

  it('names everything that is wrong with a header at once, and the columns that exist', async () => {
    const options = { ...CSV, map: { nummer: 'card_number' }, echo: ['note'] }
    expect((await failure('reference,Expiry,city,reference\n', options)).message).toBe(
      'Line 1, column 2: unknown column "Expiry"; column 3: unknown column "city"; ' +
        'column 4: "reference" stands in column 1 too; no column "nummer", which --map names; ' +
        'no column "note" to echo; no column card_number or encrypted_card. ' +
        'Write it expiry, or name it with --map FILE. Name it with --map FILE, or drop such columns with --ignore-unknown. ' +
        'Rename one. Check --map. The file has "reference", "Expiry", "city", "reference". ' +
        'Check --echo. The file has "reference", "Expiry", "city", "reference". Add the column, or name it with --map FILE. ' +
        'Columns of token-create: reference, card_number, expiry_month, expiry_year, expiry, cardholder_name, ' +
        'sequence_number, encrypted_card, public_key_alias, card_brand, token_type, token_expiry_date.',
    )
  })

  it('counts the errors of a header that has too many to name', async () => {
    const { message } = await failure(`${HEADER},${Array.from({ length: 14 }, (_, at) => `c${at}`).join(',')}\n`)
    expect(message).toMatch(/column 15: unknown column "c9"; 4 more errors\./)
  })

  it('never quotes the first row of a file without a header', async () => {
    const error = await failure(`DOE,${PAN},0527\n`)
    expect(error.message).toBe(
      'Line 1 holds data, not the names of columns. Put a line with the names of the columns first.',
    )
  })

  it.each([
    [{ a: 'card_number', b: 'card_number' }, /gives two columns the name card_number/],
    [{ a: 'pan' }, /gives "a" the unknown name "pan"/],
    [{ a: 'card_number' }, /no column "a", which --map names/],
    [{ reference: 'expiry' }, /a second column for expiry/],
  ])('refuses the map %j', async (map, words) => {
    expect((await failure('reference,expiry,card_number\nx,0527,4\n', { ...CSV, map })).message).toMatch(words)
  })

  it('refuses to echo a column that is not there', async () => {
    expect((await failure(`${HEADER}\n`, { ...CSV, echo: ['note'] })).message).toMatch(/no column "note" to echo/)
  })
})

describe('NDJSON', () => {
  const row = (extra: string) => `{"reference":"x","card_number":"${PAN}","expiry":"0527"${extra}}`

  it('reads texts and whole numbers under the names of the columns', async () => {
    const text = `\ufeff${row('')}\r\n\n{"card_number":4111111111111111,"expiry_month":5,"expiry_year":27,"reference":null}\n`
    expect(await records(text, NDJSON)).toEqual([
      { line: 1, reference: 'x', request: { card: { cardNumber: PAN, expiryMonth: 5, expiryYear: 2027 } } },
      { line: 3, request: { card: { cardNumber: PAN, expiryMonth: 5, expiryYear: 2027 } } },
    ])
  })

  it.each([
    ['is no JSON', '{"reference":', 'row_json'],
    ['is no object', '[1]', 'row_json'],
    ['has a key twice', row(',"reference":"y"'), 'row_json'],
    ['has a key twice in other letters', row(',"\\u0072eference":"y"'), 'row_json'],
    ['has an unknown key', row(',"city":"Y"'), 'field_unknown'],
    ['has the key __proto__', row(',"__proto__":"Y"'), 'field_unknown'],
    ['has an object for a value', row(',"cardholder_name":{}'), 'field_type'],
    ['has a number that a double cannot hold', `{"card_number":6304000000000000001,"expiry":"0527"}`, 'field_type'],
    ['has a lone surrogate', row(',"cardholder_name":"\\ud800"'), 'field_characters'],
    ['has a NUL byte', row(',"cardholder_name":"\0"'), 'row_nul'],
    ['is too long', row(`,"cardholder_name":"${'x'.repeat(70_000)}"`), 'row_too_long'],
  ])('rejects a row that %s', async (_, bad, reason) => {
    expect(await reasons(`${row('')}\n${bad}\n${row('')}\n`, NDJSON)).toEqual([undefined, reason, undefined])
  })

  it('counts keys rightly whatever the texts hold', async () => {
    expect(await reasons(`${row(',"cardholder_name":"a\\\\\\": \\"{:"')}\n`, NDJSON)).toEqual([undefined])
  })

  it('drops unknown keys if told to, whatever they hold, and echoes by name', async () => {
    const options = { ...NDJSON, ignoreUnknown: true, echo: ['note'] }
    const rows = await read(`${row(',"note":"n","deep":{"reference":[{"a":"}"}]}')}\n${row('')}\n`, options)
    expect(rows.map(({ rejected, echo }) => [rejected, echo])).toEqual([
      [undefined, ['n']],
      [undefined, ['']],
    ])
  })

  it('stops at an unknown key of the first row, naming it', async () => {
    expect((await failure(`\n${row(',"city":"Y"')}\n`, NDJSON)).message).toMatch(/^Line 2: unknown key "city"\./)
  })

  it('names every unknown key of the first row', async () => {
    expect((await failure(`${row(',"city":"Y","zip":1')}\n`, NDJSON)).message).toMatch(
      /^Line 1: unknown key "city", "zip"\. .*Columns of token-create: reference, card_number/,
    )
  })

  it('tells the reference of a rejected row where it has one that is sound', async () => {
    const texts = [
      row(',"city":"Y"'),
      row(',"cardholder_name":{}'),
      row(',"city":1,"reference":"y"'),
      '{"reference":"x",',
      `{"reference":["x"],"city":1}`,
      `{"reference":"${PAN}","city":1}`,
    ]
    const bytes = Buffer.concat([
      Buffer.from([row(''), ...texts, '{"reference":"x","cardholder_name":"'].join('\n')),
      Buffer.from([0xfc]),
      Buffer.from('"}\n'),
    ])
    const read = await collect(readRows(inPieces(bytes), NDJSON))
    expect(read.slice(1).map(({ rejected, reference }) => [rejected, reference])).toEqual([
      ['field_unknown', 'x'],
      ['field_type', 'x'],
      ['field_unknown', undefined],
      ['row_json', undefined],
      ['field_type', undefined],
      ['field_unknown', undefined],
      ['row_utf8', 'x'],
    ])
  })

  it('refuses an empty file', async () => {
    expect((await failure('\n\n', NDJSON)).message).toMatch(/holds no rows/)
  })
})

describe('rows with source times', () => {
  const PROFILE = profile({ source_time: { form: 'DD.MM.YYYY', zone: 'UTC' } })
  const timesOf = async (text: string, options: RowOptions) =>
    (await records(text, options)).map(({ request, rejected }) => request?.source_time ?? rejected?.reason)

  it('say when they were given, or are rejected, in every format', async () => {
    const wanted = [
      '2026-03-31T00:00:00.000Z',
      '2026-03-31T08:00:00.000Z',
      'source_time_invalid',
      'source_time_invalid',
    ]
    const times = ['2026-03-31', '2026-03-31T10:00:00+02:00', '31.3.2026', '']
    const csv = times.map(time => `${PAN},5,27,${time}`).join('\n')
    const timed = { timeColumn: 'updated' }
    expect(await timesOf(`card_number,expiry_month,expiry_year,updated\n${csv}\n`, { ...CSV, ...timed })).toEqual(
      wanted,
    )
    const ndjson = times.map(updated => JSON.stringify({ card_number: PAN, expiry: '05/27', updated })).join('\n')
    expect(await timesOf(ndjson, { ...NDJSON, ...timed, echo: ['updated'] })).toEqual(wanted)
    const rows = ['31.3.2026', '31.03.2026 10:00', '2026-03-31', ''].map((time, n) => `${n},${PAN},5,27,ADA,${time}`)
    const text = `id,number,month,year,name,updated\n${rows.join('\n')}\n`
    expect(await timesOf(text, { ...CSV, ...timed, profile: PROFILE, echo: ['name'].slice(1) })).toEqual([
      ...['2026-03-31T00:00:00.000Z', '2026-03-31T10:00:00.000Z', 'source_time_invalid', 'source_time_invalid'],
    ])
  })

  it('have no such member where nothing asks for it', async () => {
    expect(await timesOf(`card_number,expiry_month,expiry_year\n${PAN},5,27\n`, CSV)).toEqual([undefined])
  })

  it('need the column in the header', async () => {
    const text = `card_number,expiry_month,expiry_year\n${PAN},5,27\n`
    const error = await failure(text, { ...CSV, timeColumn: 'updated' })
    expect(error.message).toContain('no column "updated", which --source-time names')
  })

  it.each([{ drop: ['updated'] }, {}])('never read card data as a time, nor a dropped field: %j', async changes => {
    const timeColumn = 'drop' in changes ? 'updated' : 'number'
    const text = `id,number,month,year,name,updated\n1,${PAN},5,27,ADA,2026-03-31\n`
    const error = await failure(text, { ...CSV, profile: profile(changes), timeColumn })
    expect(error.message).toContain('is no field of times')
  })
})
