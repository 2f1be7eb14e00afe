# python -m datasets campaign
insert(user: string, db: string, p: string, data: string)
delete(user: string, db: string, p: string, data: string)
select(user: string, db: string, p: string, data: string)
update(user: string, db: string, p: string, data: string)
