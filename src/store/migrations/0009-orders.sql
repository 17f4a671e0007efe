-- Orders, as they are taken in from files: the latest state of each, and nothing before it.
create table tokenmill.order (
  order_id text collate "C" primary key,
  order_reference text collate "C" not null,
  status text not null,
  order_type text not null,
  created_user_uid uuid not null,
  created_by text not null,
  created_date timestamptz not null,
  modified_user_uid uuid not null,
  modified_by text not null,
  modified_date timestamptz not null,
  entity_uid uuid not null,
  merchant_company text,
  merchant_company_entity_uid uuid,
  customer_entity_uid uuid,
  ingested_at timestamptz not null default now(),
  constraint order_status_is_known check (
    status in ('DRAFT', 'SUBMITTED', 'INPROGRESS', 'COMPLETED', 'CANCELLED', 'ONHOLD')
  ),
  constraint order_type_is_known check (
    order_type in ('POIOrder', 'MerchantOrder', 'POIMaintenanceOrder', 'MerchantMaintenanceOrder', 'POIAccessoryOrder',
      'AdditionalServicesOrder', 'HardwareOrder')
  ),
  constraint order_is_modified_after_it_is_created check (created_date <= modified_date)
);

-- Every search is within one entity and one type; a page is read off one of these from either end.
create index order_by_creation on tokenmill.order (entity_uid, order_type, created_date, order_id);
create index order_by_modification on tokenmill.order (entity_uid, order_type, modified_date, order_id);
create index order_by_reference on tokenmill.order (entity_uid, order_reference);
create index order_by_status on tokenmill.order (entity_uid, order_type, status, created_date);
create index order_by_creator on tokenmill.order (entity_uid, order_type, created_user_uid);
create index order_by_modifier on tokenmill.order (entity_uid, order_type, modified_user_uid);
create index order_by_company on tokenmill.order (entity_uid, merchant_company_entity_uid)
  where merchant_company_entity_uid is not null;
create index order_by_customer on tokenmill.order (entity_uid, customer_entity_uid)
  where customer_entity_uid is not null;

grant select on tokenmill.order to tokenmill_reader;
