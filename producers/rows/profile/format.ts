// The form of a file, as a profile declares it: how bytes become text, and how text becomes records.
import { z } from 'zod'
import { FIELD } from './field.ts'

export const ENCODINGS = ['utf-8', 'windows-1252', 'iso-8859-1', 'utf-16', 'utf-16le', 'utf-16be'] as const
export type Encoding = (typeof ENCODINGS)[number]

export const field = (what: string) => z.string().regex(FIELD).describe(what)

export const nameFields = z
  .array(field('A field.'))
  .min(1)
  .max(4)
  .describe('The fields of the name, joined by a blank; empty ones are left out.')

export const delimiter = z
  .string()
  .regex(/^[^A-Za-z0-9"\\\r\n\0 ]$/u)
  .optional()
  .describe('One character between fields; a comma if absent.')

const encoding = z
  .enum(ENCODINGS)
  .optional()
  .describe(
    'How the bytes stand for characters; utf-8 if absent. utf-16 goes by its byte order mark, else low byte first.',
  )
const skipLines = z
  .int()
  .min(0)
  .max(1_000)
  .optional()
  .describe('So many physical lines at the beginning of the file are passed over unread.')
const mark = z
  .string()
  .min(1)
  .max(64)
  .describe(
    'The text by which this record is known: the whole first field of a delimited line, the start of a fixed one.',
  )
const counts = z
  .enum(['rows', 'records'])
  .optional()
  .describe('What the stated number counts: rows (if absent), or rows and header and trailer records together.')

const delimitedRecord = (what: string) =>
  z
    .strictObject({
      mark,
      count_field: z.int().min(1).max(1_000).optional().describe('The field, from 1, that states a number of records.'),
      counts,
    })
    .optional()
    .describe(what)
const fixedRecord = (what: string) =>
  z
    .strictObject({
      mark,
      count_start: z
        .int()
        .min(1)
        .max(10_000)
        .optional()
        .describe('The character, from 1, where a stated number begins.'),
      count_length: z.int().min(1).max(18).optional().describe('How many characters the stated number has.'),
      counts,
    })
    .optional()
    .describe(what)
const HEADER_RECORD = 'The file begins with this record, before the names of the columns.'
const TRAILER_RECORD = 'The file ends with this record. A file without it, or with another number of rows, is refused.'

const Delimited = z
  .strictObject({
    type: z.literal('delimited').describe('One record per line, fields apart by a delimiter.'),
    encoding,
    delimiter,
    quotes: z
      .enum(['doubled', 'backslash', 'none'])
      .optional()
      .describe(
        'How a quoted field writes a quote: doubled ("" as in RFC 4180; if absent), or after a backslash; none: quotes are ordinary characters.',
      ),
    skip_lines: skipLines,
    header: z
      .enum(['exact', 'any_case', 'none'])
      .optional()
      .describe('The first row names the columns: exact (if absent), or in any case; none: the file has no such row.'),
    names: z
      .array(field('Name of a column.'))
      .min(1)
      .max(1_000)
      .optional()
      .describe('The names of the columns of a file without a header. Without them columns go by number: #1.'),
    header_record: delimitedRecord(HEADER_RECORD),
    trailer_record: delimitedRecord(TRAILER_RECORD),
  })
  .describe('Delimited text.')
export type Delimited = z.infer<typeof Delimited>

const FixedColumn = z.strictObject({
  name: field('Name of the column.'),
  start: z.int().min(1).max(10_000).describe('Its first character, from 1.'),
  length: z.int().min(1).max(10_000).describe('Its number of characters. Blanks at both ends are padding.'),
})

const Fixed = z
  .strictObject({
    type: z.literal('fixed').describe('One record per line, each field at its place.'),
    encoding,
    skip_lines: skipLines,
    length: z.int().min(1).max(10_000).describe('The number of characters that every record has.'),
    pad_short: z
      .boolean()
      .optional()
      .describe('true: a shorter record lost the blanks at its end in a transfer, and gets them back.'),
    columns: z.array(FixedColumn).min(1).max(1_000).describe('The places of the columns, none of which overlap.'),
    header_record: fixedRecord(HEADER_RECORD),
    trailer_record: fixedRecord(TRAILER_RECORD),
  })
  .describe('Fixed-width text.')
export type Fixed = z.infer<typeof Fixed>

const Ndjson = z
  .strictObject({ type: z.literal('ndjson').describe('One JSON object per line, a record each.'), encoding })
  .describe('NDJSON.')

const Json = z
  .strictObject({
    type: z.literal('json').describe('One JSON document with an array of elements, read as a stream.'),
    encoding,
    records: z
      .string()
      .max(500)
      .regex(/^[^[\]{}\r\n\0]*\[\](?:\.[^[\]{}\r\n\0.]+(?:\.[^[\]{}\r\n\0.]+)*\[\])*$/)
      .describe(
        'Where the records are: customers[].cards[] is each element of cards of each element of customers; [] is each element of a document that is an array.',
      ),
  })
  .describe('Nested JSON.')
export type Json = z.infer<typeof Json>

export const FileFormat = z.discriminatedUnion('type', [Delimited, Fixed, Ndjson, Json])
export type FileFormat = z.infer<typeof FileFormat>
