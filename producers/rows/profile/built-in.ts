// The profiles that come with tokenmill, by name. Each holds what its provider has published; users add what isn't
// public to a copy. docs/profiles has more examples.
import type { Profile } from './profile-schema.ts'

/** Stripe's file of old and new ids. */
function stripeReturn(customer: string): Profile['return'] {
  return {
    rows: 'took_effect',
    columns: [
      { name: 'customer_id_old', from: customer },
      { name: 'source_id_old', value: 'reference' },
      { name: 'customer_id_new', from: customer },
      { name: 'source_id_new', value: 'reuse_token' },
    ],
  }
}

const STRIPE_CSV: Profile = {
  profile: 1,
  name: 'stripe-csv',
  title: 'Stripe, CSV export: one row for each card',
  notes: [
    'The reference is the id of the card, card.id; the id of its customer stands in id.',
    'Names of columns are taken in any case: they stand in capitals in the sample that Stripe publishes.',
    'card.transaction_ids, default_source and the address are not read yet.',
    'The file that goes back has the old and new ids; customers keep theirs.',
  ],
  format: { type: 'delimited', header: 'any_case' },
  no_card: 'skip',
  columns: {
    reference: '{card.id}',
    card_number: { from: 'card.number' },
    expiry: { month: 'card.exp_month', year: 'card.exp_year' },
    cardholder_name: { from: ['card.name'] },
  },
  return: stripeReturn('id'),
}

const STRIPE_JSON: Profile = {
  profile: 1,
  name: 'stripe-json',
  title: 'Stripe-style JSON: customers with their cards in one document',
  notes: [
    'The reference is the id of the card; the id of its customer is ^.id.',
    'A customer without cards is skipped.',
    'Other providers send this form too.',
    'The file that goes back has the old and new ids; customers keep theirs.',
  ],
  add: ['Only a part of the form is public: compare the names of the members with the file.'],
  format: { type: 'json', records: 'customers[].cards[]' },
  no_card: 'skip',
  columns: {
    reference: '{id}',
    card_number: { from: 'number' },
    expiry: { month: 'exp_month', year: 'exp_year' },
    cardholder_name: { from: ['name'] },
  },
  return: stripeReturn('^.id'),
}

const BRAINTREE: Profile = {
  profile: 1,
  name: 'braintree',
  title: 'Braintree, CSV export: one row for each card, and for each customer without a card',
  notes: [
    'The reference is the token of the card, credit_card.token; the id of its customer stands in id.',
    'A customer without a card has a row with empty card columns, which is skipped.',
    'The name is made of first_name and last_name of the customer.',
  ],
  add: [
    'The names of the card columns behind credit_card.token are not public: compare credit_card.number and credit_card.expiration with the header of the file.',
    'The expiry is read as MMYYYY. If the file has month and year in columns of their own, copy the profile and write {"month": …, "year": …} in columns.expiry.',
  ],
  format: { type: 'delimited' },
  no_card: 'skip',
  columns: {
    reference: '{credit_card.token}',
    card_number: { from: 'credit_card.number' },
    expiry: { from: 'credit_card.expiration', form: 'MMYYYY' },
    cardholder_name: { from: ['first_name', 'last_name'] },
  },
}

const SQUARE: Profile = {
  profile: 1,
  name: 'square',
  title: 'Square, CSV export: one row for each card',
  notes: [
    'The reference is card_id. The file has no name of the cardholder.',
    'postal_code is not read yet.',
    'In the file that goes back square_card_id is the reuse token and square_card_fingerprint the analytics token, which a row has if columns.token_type says REUSE_AND_ANALYTICS. square_customer_id is empty.',
  ],
  format: { type: 'delimited' },
  columns: {
    reference: '{card_id}',
    card_number: { from: 'pan' },
    expiry: { from: 'expiration', form: 'YYYY-MM' },
  },
  return: {
    rows: 'took_effect',
    columns: [
      { name: 'external_card_id', value: 'reference' },
      { name: 'square_card_id', value: 'reuse_token' },
      {
        name: 'card_brand',
        value: 'brand',
        words: { AMEX: 'AMERICAN_EXPRESS', DINERS: 'DISCOVER_DINERS', UPI: 'CHINA_UNIONPAY' },
      },
      { name: 'card_last_4', value: 'last_four' },
      { name: 'card_exp_month', value: 'expiry_month', form: 'M' },
      { name: 'card_exp_year', value: 'expiry_year', form: 'YYYY' },
      { name: 'square_card_fingerprint', value: 'analytics_token' },
      { name: 'external_customer_id', from: 'customer_id' },
      { name: 'square_customer_id', constant: '' },
    ],
  },
}

const BLUESNAP: Profile = {
  profile: 1,
  name: 'bluesnap',
  title: 'BlueSnap, CSV export: references are NOT unique',
  notes: [
    'The file has no id of the card. The reference is made of account and last four digits, 1001-1111: two cards of an account may share it, and then only the line tells them apart.',
    'Network Transaction Id and Zip Code are not read yet.',
  ],
  add: ['Further columns are not public; they are passed over.'],
  format: { type: 'delimited' },
  columns: {
    reference: '{BlueSnap Account Id}-{Credit Card Number:last4}',
    card_number: { from: 'Credit Card Number' },
    expiry: { month: 'Expiration Month', year: 'Expiration Year' },
    cardholder_name: { from: ['First Name', 'Last Name'] },
  },
}

export const BUILT_IN: Readonly<Record<'stripe-csv' | 'stripe-json' | 'braintree' | 'square' | 'bluesnap', Profile>> = {
  'stripe-csv': STRIPE_CSV,
  'stripe-json': STRIPE_JSON,
  braintree: BRAINTREE,
  square: SQUARE,
  bluesnap: BLUESNAP,
}
