// A profile: how to read the file of one provider. It is data, written as JSON with this schema. Unknown members are
// refused.
import { z } from 'zod'
import { SPREADSHEET_FORMS } from '../spreadsheet-form.ts'
import { TIME_FORMS } from '../time-form.ts'
import { EXPIRY_FORMS } from './expiry-form.ts'
import { TEMPLATE } from './field.ts'
import { FileFormat, field, nameFields } from './format.ts'
import { OnFileColumns } from './on-file-schema.ts'
import { ReturnShape } from './return-shape.ts'

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,63}$/)
  .describe('Short name: small letters, digits and hyphens.')
const pivot = z
  .int()
  .min(0)
  .max(99)
  .optional()
  .describe('Years of two digits from this one upwards are of the 1900s. If absent, all are of the 2000s.')

const Expiry = z
  .union([
    z.strictObject({
      from: field('The field that holds month and year.'),
      form: z.enum(EXPIRY_FORMS).describe('The one form of its texts. Four digits are never guessed.'),
      pivot,
    }),
    z.strictObject({
      month: field('The field that holds the month, M or MM.'),
      year: field('The field that holds the year, YY or YYYY.'),
      pivot,
    }),
  ])
  .describe('The expiry date: one field of a declared form, or a field each for month and year.')

const value = (what: string) =>
  z
    .union([
      z.strictObject({ from: field('The field that holds it.') }),
      z.strictObject({ constant: z.string().min(1).max(256).describe('The same text in every record.') }),
    ])
    .optional()
    .describe(what)

const Columns = z
  .strictObject({
    reference: z
      .string()
      .max(1_000)
      .regex(TEMPLATE)
      .optional()
      .describe(
        'What results name the row by: fields in braces and text around them, {card.id} or {account}-{number:last4}. If all fields are empty the row has none; if some are it is rejected.',
      ),
    card_number: z
      .strictObject({
        from: field('The field that holds the card number.'),
        remove: z
          .string()
          .regex(/^[^A-Za-z0-9]{1,8}$/)
          .optional()
          .describe(
            'Characters that are taken out of the number, such as blank and hyphen (repair number_separators).',
          ),
        padded: z
          .boolean()
          .optional()
          .describe(
            'true: zeros in front of the number are taken away, though never below 12 digits (repair number_padding). No card number begins with 0.',
          ),
      })
      .describe('The card number.'),
    expiry: Expiry,
    cardholder_name: z
      .strictObject({
        from: nameFields,
        too_long: z
          .enum(['reject', 'drop', 'cut'])
          .optional()
          .describe(
            'What happens to a name of more than 30 characters: its row is rejected (if absent), the name is left out (repair name_dropped), or cut (name_cut).',
          ),
      })
      .optional()
      .describe('The name of the cardholder.'),
    sequence_number: value('The sequence number of the card.'),
    card_brand: value('The brand, in the words of tokenmill.'),
    token_type: value('The type of the token.'),
    token_expiry_date: value('The date after which the token ends, YYYY-MM-DD.'),
  })
  .describe('Which fields make what.')

const words = z.array(z.string().max(200)).min(1).max(100)
const Filter = z
  .strictObject({
    field: field('The field that is compared.'),
    is: words.optional().describe('The row passes if the field is one of these texts.'),
    is_not: words.optional().describe('The row passes if the field is none of these texts.'),
  })
  .describe('A condition with either is or is_not.')

export const Profile = z.strictObject({
  profile: z.literal(1).describe('The version of this form.'),
  name,
  title: z.string().min(1).max(200).describe('What the profile reads, in a few words.'),
  notes: z.array(z.string().min(1).max(500)).max(20).optional().describe('What its user must know, in sentences.'),
  add: z
    .array(z.string().min(1).max(500))
    .max(20)
    .optional()
    .describe('What the provider does not publish: what the user must compare with the file and add, in sentences.'),
  format: FileFormat.describe('The form of the file.'),
  trim: z.boolean().optional().describe('true: blanks at both ends of a field are taken off (repair blanks).'),
  null_words: z
    .array(z.string().min(1).max(64))
    .max(20)
    .optional()
    .describe('Texts that stand for an empty field, such as NULL, \\N or -.'),
  as_is: z
    .record(field('A field.'), z.array(z.enum(SPREADSHEET_FORMS)).min(1))
    .optional()
    .describe(
      'Forms that a spreadsheet makes of other texts, but that are right in these fields, such as { "id": ["exponent"] }. Elsewhere they reject the row (field_spreadsheet).',
    ),
  where: z.array(Filter).max(20).optional().describe('Conditions that a row must all fulfil; other rows are skipped.'),
  no_card: z
    .enum(['skip', 'reject'])
    .optional()
    .describe('What a row without a card number is: rejected (if absent), or skipped, as a customer without a card.'),
  columns: Columns,
  on_file: OnFileColumns.optional(),
  source_time: z
    .strictObject({
      form: z
        .enum(TIME_FORMS)
        .describe(
          'The one form of its texts. A day may be followed by a time of day, HH:MM or HH:MM:SS, behind a blank or T.',
        ),
      zone: z
        .string()
        .min(1)
        .max(64)
        .optional()
        .describe(
          'The zone of days and times of day: UTC, an offset such as +02:00, or a name such as Europe/Paris. timestamp (RFC 3339), unix and unix-ms have none.',
        ),
    })
    .optional()
    .describe(
      'How the field that migrate --source-time names is read. If absent: ISO 8601, a day or a time with offset.',
    ),
  drop: z
    .array(field('A field.'))
    .max(1_000)
    .optional()
    .describe(
      'Fields that are never read nor repeated. A field whose name is known as a security code’s always is one; name those that are called otherwise.',
    ),
  return: ReturnShape.optional(),
})
export type Profile = z.infer<typeof Profile>
