// The part of a profile that names the fields of the owner of a row's card, and the fields of the other members of
// `on_file`.
import { z } from 'zod'
import { ownerFields } from '../../../src/job/on-file.ts'
import { AGREED_BY, AGREEMENTS } from '../../../src/token/on-file.ts'
import { DATE_FORMS } from '../date-form.ts'
import { TEMPLATE } from './field.ts'
import { field, nameFields } from './format.ts'

const template = (what: string) => z.string().max(1_000).regex(TEMPLATE).describe(what)

const date = (what: string) =>
  z
    .strictObject({
      from: field('The field that holds it.'),
      form: z
        .enum(DATE_FORMS)
        .describe('The one form of its texts. Of a timestamp (RFC 3339) and of Unix seconds it is the day in UTC.'),
    })
    .optional()
    .describe(what)

const oneOf = <T extends readonly [string, ...string[]]>(words: T, what: string) =>
  z
    .union([
      z.strictObject({
        from: field('The field that holds it.'),
        words: z
          .record(z.string().min(1).max(200), z.enum(words))
          .describe('What each text of the field means. A row with another text is rejected.'),
      }),
      z.strictObject({ constant: z.enum(words).describe('The same in every record.') }),
    ])
    .optional()
    .describe(what)

const words = (what: string) => z.array(z.string().min(1).max(200)).min(1).max(20).describe(what)

const BillingAddress = z
  .strictObject({
    line1: field('The field of street and number.').optional(),
    line2: field('The field of the second line.').optional(),
    city: field('The field of the city.').optional(),
    state: field('The field of state or province.').optional(),
    postal_code: z
      .strictObject({
        from: field('The field of the postal code.'),
        length: z
          .int()
          .min(2)
          .max(10)
          .optional()
          .describe('Codes of digits that are shorter get leading zeros up to this length (repair postal_zeros).'),
      })
      .optional()
      .describe('The postal code.'),
    country: z
      .strictObject({
        from: field('The field of the country, two capital letters (ISO 3166-1).'),
        other: z
          .enum(['reject', 'drop'])
          .optional()
          .describe(
            'What happens to another text: its row is rejected (if absent), or the country is left out (repair country_dropped).',
          ),
      })
      .optional()
      .describe('The country.'),
  })
  .optional()
  .describe('The billing address. It is kept only in a token scope that keeps billing addresses.')

export const OnFileColumns = z
  .strictObject({
    provider: ownerFields.provider.describe('Name of the provider, the same in all its files, such as stripe.'),
    provider_account: z
      .union([
        z.strictObject({ from: field('The field that holds it.') }),
        z.strictObject({ constant: ownerFields.card_id.describe('The same text in every record.') }),
      ])
      .optional()
      .describe(
        'The account at the provider: ids are unique within one account only. Where it is absent, migrate takes it by --provider-account.',
      ),
    customer_id: template(
      'The provider’s id of the customer: fields in braces and text around them, {id}. If all fields are empty there is none; if some are the row is rejected.',
    ).optional(),
    card_id: template(
      'The provider’s id of the card, in the same form. A row in which all its fields are empty is a card without an owner.',
    ),
    cardholder_name: z
      .strictObject({
        from: nameFields,
      })
      .optional()
      .describe('The name as the provider has it, up to 256 characters.'),
    network_transaction_ids: z
      .strictObject({
        from: field('The field that holds it, or several. In JSON it may be an array of texts, one for each id.'),
        separator: z
          .string()
          .min(1)
          .max(8)
          .optional()
          .describe('What stands between several ids of one field. Without it the whole text is one id.'),
      })
      .optional()
      .describe('The network transaction ids (NTI), oldest first, up to 64 characters each.'),
    transaction_link_id: z
      .strictObject({ from: field('The field that holds it.') })
      .optional()
      .describe('Mastercard’s transaction link id (TLID). Its case counts; one of unusual form is kept and counted.'),
    first_amount: z
      .strictObject({
        from: field('The field that holds it.'),
        unit: z.enum(['major', 'minor']).describe('major: 12.34 euros; minor: 1234 cents.'),
      })
      .optional()
      .describe('The amount of the first authorisation; first_currency goes with it.'),
    first_currency: z
      .union([
        z.strictObject({ from: field('The field that holds it.') }),
        z.strictObject({
          constant: z
            .string()
            .regex(/^[A-Z]{3}$/)
            .describe('The same code in every record.'),
        }),
      ])
      .optional()
      .describe('Its currency (ISO 4217, three capital letters).'),
    first_date: date('The date of the first authorisation.'),
    agreement: oneOf(AGREEMENTS, 'What the cardholder agreed to.'),
    agreed_by: oneOf(AGREED_BY, 'How the cardholder agreed.'),
    agreed_on: date('When the cardholder agreed.'),
    is_default: z
      .union([
        z.strictObject({
          from: field('The field that says so.'),
          yes: words('Texts for yes.'),
          no: words('Texts for no. A row with another text is rejected.'),
        }),
        z.strictObject({
          from: field('A field that names the default card of the customer.'),
          equals: field('The field that is equal to it in the row of that card.'),
        }),
      ])
      .optional()
      .describe('Whether this is the customer’s default card.'),
    billing_address: BillingAddress,
  })
  .describe(
    'Whose card a row is, and what must travel with it. An empty field leaves its member out. A text that is too long for its member rejects the row (field_length).',
  )
export type OnFileColumns = z.infer<typeof OnFileColumns>
