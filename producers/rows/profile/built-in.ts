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
    'A card is the default one where default_source is equal to card.id.',
    'A country that is not two capital letters is left out (repair country_dropped).',
    'The file that goes back has the old and new ids; customers keep theirs.',
  ],
  add: [
    'card.transaction_ids is documented only as the state of network transaction ids. If your file holds the ids there, copy the profile and write "network_transaction_ids": {"from": "card.transaction_ids", "separator": ", "} in on_file, with the separator that the file has.',
    'The account at Stripe is not in the file: give --provider-account.',
  ],
  format: { type: 'delimited', header: 'any_case' },
  no_card: 'skip',
  columns: {
    reference: '{card.id}',
    card_number: { from: 'card.number' },
    expiry: { month: 'card.exp_month', year: 'card.exp_year' },
    cardholder_name: { from: ['card.name'] },
  },
  on_file: {
    provider: 'stripe',
    customer_id: '{id}',
    card_id: '{card.id}',
    cardholder_name: { from: ['card.name'] },
    is_default: { from: 'default_source', equals: 'card.id' },
    billing_address: {
      line1: 'card.address_line1',
      line2: 'card.address_line2',
      city: 'card.address_city',
      state: 'card.address_state',
      postal_code: { from: 'card.address_zip' },
      country: { from: 'card.address_country', other: 'drop' },
    },
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
  add: [
    'Only a part of the form is public: compare the names of the members with the file.',
    'Where the file holds network transaction ids, copy the profile and name their member in on_file.network_transaction_ids.',
    'Several providers send this form: on_file.provider is stripe; write another name for another one. The account there is not in the file: give --provider-account.',
  ],
  format: { type: 'json', records: 'customers[].cards[]' },
  no_card: 'skip',
  columns: {
    reference: '{id}',
    card_number: { from: 'number' },
    expiry: { month: 'exp_month', year: 'exp_year' },
    cardholder_name: { from: ['name'] },
  },
  on_file: {
    provider: 'stripe',
    customer_id: '{^.id}',
    card_id: '{id}',
    cardholder_name: { from: ['name'] },
    is_default: { from: '^.default_source', equals: 'id' },
    billing_address: { line1: 'address_line1' },
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
    'The account at Braintree is the MERCHANT_ID of the name of the file: give --provider-account.',
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
  on_file: {
    provider: 'braintree',
    customer_id: '{id}',
    card_id: '{credit_card.token}',
    cardholder_name: { from: ['first_name', 'last_name'] },
  },
}

const SQUARE: Profile = {
  profile: 1,
  name: 'square',
  title: 'Square, CSV export: one row for each card',
  notes: [
    'The reference is card_id. The file has no name of the cardholder, and no network transaction ids.',
    'In the file that goes back square_card_id is the reuse token and square_card_fingerprint the analytics token, which a row has if columns.token_type says REUSE_AND_ANALYTICS. square_customer_id is empty.',
  ],
  add: ['The account at Square is not in the file: give --provider-account.'],
  format: { type: 'delimited' },
  columns: {
    reference: '{card_id}',
    card_number: { from: 'pan' },
    expiry: { from: 'expiration', form: 'YYYY-MM' },
  },
  on_file: {
    provider: 'square',
    customer_id: '{customer_id}',
    card_id: '{card_id}',
    billing_address: { postal_code: { from: 'postal_code' } },
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
    'So is the owner of a card: of two cards of an account that end alike the later one takes the place of the former. `tokenmill inspect` counts them.',
  ],
  add: [
    'Further columns are not public; they are passed over.',
    'The account at BlueSnap is not in the file: give --provider-account.',
  ],
  format: { type: 'delimited' },
  columns: {
    reference: '{BlueSnap Account Id}-{Credit Card Number:last4}',
    card_number: { from: 'Credit Card Number' },
    expiry: { month: 'Expiration Month', year: 'Expiration Year' },
    cardholder_name: { from: ['First Name', 'Last Name'] },
  },
  on_file: {
    provider: 'bluesnap',
    customer_id: '{BlueSnap Account Id}',
    card_id: '{Credit Card Number:last4}',
    cardholder_name: { from: ['First Name', 'Last Name'] },
    network_transaction_ids: { from: 'Network Transaction Id' },
    billing_address: { postal_code: { from: 'Zip Code' } },
  },
}

export const BUILT_IN: Readonly<Record<'stripe-csv' | 'stripe-json' | 'braintree' | 'square' | 'bluesnap', Profile>> = {
  'stripe-csv': STRIPE_CSV,
  'stripe-json': STRIPE_JSON,
  braintree: BRAINTREE,
  square: SQUARE,
  bluesnap: BLUESNAP,
}
