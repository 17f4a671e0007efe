// A made file in the shape of every built-in and every example profile, with the oddities of its provider, and what each of
// its rows is read as.
import { PAN } from './profiled.ts'

const MASTERCARD = '5555555555554444'
const AMEX = '378282246310005'

export interface Sample {
  file: string | Buffer
  rows: readonly string[]
  /** What the rows that are sent say of their owners. */
  owners?: readonly object[]
}

const LONG = 'MARIA DEL CARMEN FERNANDEZ LOPEZ'

export const SAMPLES: Record<string, Sample> = {
  'stripe-csv': {
    file: [
      'DESCRIPTION,NAME,EMAIL,ID,CARD.ADDRESS_CITY,CARD.ADDRESS_COUNTRY,CARD.ADDRESS_LINE1,CARD.ADDRESS_LINE2,CARD.ADDRESS_STATE,CARD.ADDRESS_ZIP,CARD.EXP_MONTH,CARD.EXP_YEAR,CARD.ID,CARD.NAME,CARD.NUMBER,DEFAULT_SOURCE,CARD.TRANSACTION_IDS',
      `"Ada, first customer",Ada L.,ada@example.org,cus_1,Paris,FR,1 Rue,,,07501,5,2030,card_1,Ada Lovelace,${PAN},card_1,"12345, 67890"`,
      `,Ada L.,ada@example.org,cus_1,,,,,,,12,2031,card_2,"Ada ""Byron""",${MASTERCARD},card_1,`,
      'no card,Bob,bob@example.org,cus_2,,,,,,,,,,,,pm_9,',
    ].join('\r\n'),
    rows: [
      `2 card_1: ${PAN} 5/2030 Ada Lovelace`,
      `3 card_2: ${MASTERCARD} 12/2031 Ada "Byron"`,
      '4 ?: skipped no_card',
    ],
    owners: [
      {
        provider: 'stripe',
        customer_id: 'cus_1',
        card_id: 'card_1',
        cardholder_name: 'Ada Lovelace',
        is_default: true,
        billing_address: { line1: '1 Rue', city: 'Paris', postal_code: '07501', country: 'FR' },
      },
      {
        provider: 'stripe',
        customer_id: 'cus_1',
        card_id: 'card_2',
        cardholder_name: 'Ada "Byron"',
        is_default: false,
      },
    ],
  },
  'stripe-json': {
    file: `{"exported_at":"2026-11-01","customers":[
 {"id":"cus_1","email":"ada@example.org","description":null,"default_source":"card_1","cards":[
  {"id":"card_1","number":"${PAN}","exp_month":5,"exp_year":2030,"name":"Zoë \\u004covelace","address_line1":"1 Rue"},
  {"id":"card_2","number":"${MASTERCARD}","exp_month":"12","exp_year":31,"name":null}]},
 {"id":"cus_2","cards":[]},
 {"id":"cus_3","cards":[{"id":"card_3","number":${AMEX},"exp_month":13,"exp_year":2030,"name":"X"}]}
], "has_more": false}`,
    rows: [
      `2.1.1 card_1: ${PAN} 5/2030 Zoë Lovelace`,
      `2.1.2 card_2: ${MASTERCARD} 12/2031`,
      '5.2 ?: skipped no_card',
      '6.3.1 card_3: rejected expiry_format',
    ],
    owners: [
      {
        provider: 'stripe',
        customer_id: 'cus_1',
        card_id: 'card_1',
        cardholder_name: 'Zoë Lovelace',
        is_default: true,
        billing_address: { line1: '1 Rue' },
      },
      { provider: 'stripe', customer_id: 'cus_1', card_id: 'card_2', is_default: false },
    ],
  },
  braintree: {
    file: [
      'id,first_name,last_name,company,email,phone,fax,website,credit_card.token,credit_card.number,credit_card.expiration,credit_card.cvv',
      `1001,Ada,Lovelace,,a@example.org,,,,tok1,${PAN},052030,123`,
      `1001,,Lovelace,,a@example.org,,,,tok2,${MASTERCARD},122031,`,
      '1002,Bob,Bobson,"Bob, Inc.",b@example.org,,,,,,,',
      `1003,Eve,Short,,e@example.org,,,,tok3,${AMEX},52030,`,
    ].join('\n'),
    rows: [
      `2 tok1: ${PAN} 5/2030 Ada Lovelace`,
      `3 tok2: ${MASTERCARD} 12/2031 Lovelace`,
      '4 ?: skipped no_card',
      '5 tok3: rejected expiry_format',
    ],
    owners: [
      { provider: 'braintree', customer_id: '1001', card_id: 'tok1', cardholder_name: 'Ada Lovelace' },
      { provider: 'braintree', customer_id: '1001', card_id: 'tok2', cardholder_name: 'Lovelace' },
    ],
  },
  square: {
    file: `card_id,pan,expiration,postal_code,customer_id\nccof:1,${PAN},2030-05,07501,C1\nccof:2,${AMEX},05/30,,C2\n`,
    rows: [`2 ccof:1: ${PAN} 5/2030`, '3 ccof:2: rejected expiry_format'],
    owners: [{ provider: 'square', customer_id: 'C1', card_id: 'ccof:1', billing_address: { postal_code: '07501' } }],
  },
  bluesnap: {
    file: [
      'BlueSnap Account Id,Credit Card Number,First Name,Last Name,Expiration Month,Expiration Year,Network Transaction Id,Zip Code',
      `1001,${PAN},Ada,Lovelace,05,2030,016153570198200,01234`,
      `,${PAN},Bob,,5,30,,`,
    ].join('\n'),
    rows: [`2 1001-1111: ${PAN} 5/2030 Ada Lovelace`, '3 ?: rejected field_required'],
    owners: [
      {
        provider: 'bluesnap',
        customer_id: '1001',
        card_id: '1111',
        cardholder_name: 'Ada Lovelace',
        network_transaction_ids: ['016153570198200'],
        billing_address: { postal_code: '01234' },
      },
    ],
  },
  'adyen-import': {
    file: [
      'MerchantAccount,ShopperEmail,ShopperReference,RecurringContract,EchoData,OwnerName,ExpiryMonth,ExpiryYear,ExpiryYYMM,ExpiryMMYY,ExpiryMMYYYY,ExpiryYYYYMM,CardNumber,BillingStreet,BillingCity,BillingStateOrProvince,BillingPostalCode,BillingCountry',
      `M1,a@example.org,shopper-1,"RECURRING,ONECLICK,PAYOUT",e1,${LONG},5,2030,3005,0530,052030,203005,${PAN},,,,,`,
      'M1,b@example.org,shopper-2,RECURRING,e2,Bob,,,,,,,,,,,,',
    ].join('\n'),
    rows: [`2 shopper-1-1111: ${PAN} 5/2030 MARIA DEL CARMEN FERNANDEZ LOP [name_cut]`, '3 ?: skipped no_card'],
    owners: [
      {
        provider: 'adyen',
        provider_account: 'M1',
        customer_id: 'shopper-1',
        card_id: '1111',
        cardholder_name: LONG,
      },
    ],
  },
  gr4vy: {
    file: `audit_reference_id,merchant_account_id,buyer.external_identifier,payment_method.number,payment_method.expiration_date,payment_method.scheme_transaction_id,payment_method.external_identifier\na1,default,b1,${PAN},05/30,016,pm-1\n`,
    rows: [`2 pm-1: ${PAN} 5/2030`],
    owners: [
      {
        provider: 'gr4vy',
        provider_account: 'default',
        customer_id: 'b1',
        card_id: 'pm-1',
        network_transaction_ids: ['016'],
      },
    ],
  },
  spreedly: {
    file: `id,first_name,last_name,card_number,expiration_month,expiration_year\n1,Ada,Lovelace,${PAN},5,2030\n2,MARIA DEL CARMEN,FERNANDEZ LOPEZ,${AMEX},12,31\n`,
    rows: [`2 1: ${PAN} 5/2030 Ada Lovelace`, `3 2: ${AMEX} 12/2031 [name_dropped]`],
    owners: [
      { provider: 'spreedly', card_id: '1', cardholder_name: 'Ada Lovelace' },
      { provider: 'spreedly', card_id: '2', cardholder_name: 'MARIA DEL CARMEN FERNANDEZ LOPEZ' },
    ],
  },
  zuora: {
    file: `Credit Card Number,Expiration Year,Expiration Month,Credit Card Holder Name,Address 1\n4111-1111-1111-1111,2030,05, Ada Lovelace ,"1, Rue"\n${AMEX},30,5,Bob,\n`,
    rows: [`2 ?: ${PAN} 5/2030 Ada Lovelace [blanks number_separators]`, `3 ?: ${AMEX} 5/2030 Bob`],
  },
  'mercado-pago': {
    file: `Filler,external_reference,customer_email,Filler,Filler,card_number,expiration_month,expiration_year,cardholder_name,Filler\nx,ref-1,a@example.org,,,${PAN},05,30,Ada,y\nx,ref-2,b@example.org,,,${AMEX},05,91,Bob,y\n`,
    rows: [`2 ref-1: ${PAN} 5/2030 Ada`, `3 ref-2: ${AMEX} 5/1991 Bob`],
    owners: [
      { provider: 'mercado-pago', card_id: 'ref-1' },
      { provider: 'mercado-pago', card_id: 'ref-2' },
    ],
  },
  checkout: {
    file: `email,number,month,year,name,token,scheme_transaction_id,transaction_link_id,AddressLine1,AddressLine2,AddressPostal,AddressCity,AddressState,AddressCountry\na@example.org,${PAN},5,2030,Ada,src_1,016,-AbCdEfGhIjKlMnOpQrStU,,,01234,,,FR\n`,
    rows: [`2 src_1: ${PAN} 5/2030 Ada`],
    owners: [
      {
        provider: 'checkout',
        customer_id: 'a@example.org',
        card_id: 'src_1',
        network_transaction_ids: ['016'],
        transaction_link_id: '-AbCdEfGhIjKlMnOpQrStU',
        billing_address: { postal_code: '01234', country: 'FR' },
      },
    ],
  },
  payrix: {
    file: `source_customer_id,source_token_id,card_number,card_type,token_expiration,customer_first_name,customer_last_name\nc1,t1,${PAN},visa,0530,Ada,Lovelace\nc2,t2,${AMEX},amex,3013,Bob,B\n`,
    rows: [`2 t1: ${PAN} 5/2030 Ada Lovelace`, '3 t2: rejected expiry_format'],
    owners: [{ provider: 'payrix', customer_id: 'c1', card_id: 't1', cardholder_name: 'Ada Lovelace' }],
  },
  tokenex: {
    file: Buffer.from(
      `Token,CardNumber,ExpDate,FirstName,LastName,CVV2\nt1,${PAN},3005,René,Müller,999\nt2,${AMEX},3112,Bob,Bobson,\n`,
      'latin1',
    ),
    rows: [`2 t1: ${PAN} 5/2030 René Müller [encoding]`, `3 t2: ${AMEX} 12/2031 Bob Bobson`],
    owners: [
      { provider: 'tokenex', card_id: 't1', cardholder_name: 'René Müller' },
      { provider: 'tokenex', card_id: 't2', cardholder_name: 'Bob Bobson' },
    ],
  },
  'european-spreadsheet': {
    file: Buffer.concat([
      Buffer.from('KUNDENNUMMER;ZAHLART;KARTENNUMMER;GÜLTIG BIS;INHABER;BEMERKUNG\r\n', 'latin1'),
      Buffer.from(`7;Karte;4111 1111 1111 1111;05/30; Jos`, 'latin1'),
      Buffer.from([0xe9, 0x20, 0x93, 0x50, 0x65, 0x70, 0x65, 0x94]),
      Buffer.from(
        ` ;"Anruf; Rückruf"\r\n8;Lastschrift;DE89370400440532013000;-;Bob;\r\n9;Karte;-;NULL;Eve;\r\n`,
        'latin1',
      ),
    ]),
    rows: [
      `2 7/1111: ${PAN} 5/2030 José “Pepe” [blanks encoding number_separators]`,
      '3 8/3000: skipped filtered',
      '4 ?: skipped no_card',
    ],
  },
  'fixed-width': {
    file: Buffer.from(
      [
        'HD20261101 PRODUCTION',
        `01${'ID-1'.padEnd(12)}${PAN.padEnd(19)}3005${'MÜLLER, RENÉ'.padEnd(40)}A12`,
        `01${'ID-2'.padEnd(12)}${AMEX.padEnd(19)}9912${LONG.padEnd(40)}A  `,
        `01${'ID-3'.padEnd(12)}${MASTERCARD.padEnd(19)}3005${'GONE'.padEnd(40)}X  `,
        `01${'ID-4'.padEnd(12)}${MASTERCARD.padEnd(19)}3005`,
        'TR000000006',
      ].join('\r\n'),
      'latin1',
    ),
    rows: [
      `2 ID-1: ${PAN} 5/2030 MÜLLER, RENÉ [encoding]`,
      `3 ID-2: ${AMEX} 12/1999 MARIA DEL CARMEN FERNANDEZ LOP [name_cut]`,
      '4 ID-3: skipped filtered',
      '5 ?: rejected row_fields',
    ],
  },
  vgs: {
    file: `token,card_number,exp_month,exp_year\ntok_1,${PAN},5,2030\ntok_2,${AMEX},13,2030\n`,
    rows: [`2 tok_1: ${PAN} 5/2030`, '3 tok_2: rejected expiry_format'],
  },
  oppwa: {
    file: `CustomerName,Email,RegistrationId,UniqueId,Expiry,City,OPP_card.country,OPP_billing.street1,State,Zip,OPP_card.number\nAda,a@example.org,8a82,u1,2030-05,Paris,FR,1 Rue,,07501,${PAN}\n`,
    rows: [`2 8a82: ${PAN} 5/2030 Ada`],
    owners: [
      {
        provider: 'aci',
        card_id: '8a82',
        cardholder_name: 'Ada',
        billing_address: { line1: '1 Rue', city: 'Paris', postal_code: '07501' },
      },
    ],
  },
}
