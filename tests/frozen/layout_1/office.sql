--
-- PostgreSQL database dump
--


-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: margrave; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA margrave;


--
-- Name: stay(); Type: FUNCTION; Schema: margrave; Owner: -
--

CREATE FUNCTION margrave.stay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'entries are never changed or removed' ; END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: confidential; Type: TABLE; Schema: margrave; Owner: -
--

CREATE TABLE margrave.confidential (
    name text NOT NULL,
    value bytea NOT NULL
);


--
-- Name: entries; Type: TABLE; Schema: margrave; Owner: -
--

CREATE TABLE margrave.entries (
    seq bigint NOT NULL,
    before text NOT NULL,
    text text NOT NULL,
    hash text NOT NULL
);


--
-- Name: layout; Type: TABLE; Schema: margrave; Owner: -
--

CREATE TABLE margrave.layout (
    version integer NOT NULL
);


--
-- Data for Name: confidential; Type: TABLE DATA; Schema: margrave; Owner: -
--

COPY margrave.confidential (name, value) FROM stdin;
fingerprint/key	\\x6aaf8193c525cd65ff5d87209174f1aa3bb5f086ec4c96b7696e5b4af82b773082932394201dcf6406ef03956059d87c
office/key	\\x2d2d2d2d2d424547494e2050524956415445204b45592d2d2d2d2d0a4d43344341514177425159444b325677424349454947353350354f7a575046507373703942336e4c785174626d77316242327356412b716f5a6a712b5346676f0a2d2d2d2d2d454e442050524956415445204b45592d2d2d2d2d0a
run/799e0583/dataset	\\x59c4bf6dd5d6dae9d1b43c630c4a52bccf74bad7f13113d1cf09ed1a254e4ef4120b56df030327334596eca741560d5a
run/799e0583/key	\\x755dc5bf3962d5c06529a9bbbf105fb639e5e6c40fbf70c9217bb2954013fd1c802b0d21087ca1e62002cfc16cc4b933
run/held/key	\\xc51e82af55d0d010ddd6223677eb2c59c80c571157d0f79bd265ac8420748c4fcbfda6a435af3ec6e3de7ef34ca6d7f5
run/paid/dataset	\\xc7ef8dca3beed85fa5bea887ae7a6bf26d6963726f64617461
run/paid/key	\\xe510941888e25f7243ed0d2bb947d03e696f2f94d5ee396b6b214603071c8ded20490ef46620ec645c4b430763226738
\.


--
-- Data for Name: entries; Type: TABLE DATA; Schema: margrave; Owner: -
--

COPY margrave.entries (seq, before, text, hash) FROM stdin;
1	0000000000000000000000000000000000000000000000000000000000000000	{"at":"2026-01-15T09:00:02+00:00","content":{"fingerprint_key":"d785ba06d1f56c34fcd6329cfa34dd63107d5b754c49f2e58eeccdd275fecaff","keys":[{"key":"e6352c22151995d942d8e20b83f1684bdd61d9431727b486e43d7fed7fed702a","person":"Ada","role":"director"},{"key":"7839389eb86788e738bb71a9b292c98610ef0acbfc129f106d964b70ebc7be7f","person":"Ben","role":"director"},{"key":"729c35864d0616e35d9c5b7c2ef3dbfc68b7307dcae1c5293757e4350a6ab5e0","person":"Cleo","role":"director"}],"ledger":"a553b0498841","office":"Harbour Office","office_key":"4b9fee53b185f5b544438121198391be2abcc69cace3bfbf89739e1e2d6510ff","solo":false},"format":1,"kind":"founded"}	b92b021a8e03c44431b1aa995ad0d8725997943375269340dbb6e0cee1e7b875
2	b92b021a8e03c44431b1aa995ad0d8725997943375269340dbb6e0cee1e7b875	{"at":"2026-01-15T09:00:04+00:00","content":{"act":"grant","subject":"cdda0cc6c84d36075da05bda747ce51c271f69aa40377919556b9d4cd5c0226f","would":{"account":"harbour","act":"grant","cap":"2999991/500000","closes":"","currency":"rho","delta":"1/10000000000","identity":{"protect":"persons","relation":"add-remove","singles":""},"ledger":"a553b0498841","number":1,"period":"once","to_publish":1,"to_spend":0}},"format":1,"kind":"proposed"}	c2edc3095cff2a1d4b997ec7f376a1767e58fd711fab838466f6ce3349f69b0b
3	c2edc3095cff2a1d4b997ec7f376a1767e58fd711fab838466f6ce3349f69b0b	{"at":"2026-01-15T09:00:06+00:00","content":{"act":"grant","expires":"2026-02-14T09:00:05+00:00","key":"e6352c22151995d942d8e20b83f1684bdd61d9431727b486e43d7fed7fed702a","person":"Ada","signature":"740a2b8cd98cbd148af29a74478cb550a83c571bc01a814a6b88309cbb5f315785116fb409ee83f96ccfe2c81f327073edce93e2e2d5be19a1b989cd68548408","subject":"cdda0cc6c84d36075da05bda747ce51c271f69aa40377919556b9d4cd5c0226f"},"format":1,"kind":"approved"}	b6963fc5450dcdff71f595d05949074e6a567f73a7199681e59e6d417e941677
4	b6963fc5450dcdff71f595d05949074e6a567f73a7199681e59e6d417e941677	{"at":"2026-01-15T09:00:08+00:00","content":{"act":"grant","expires":"2026-02-14T09:00:07+00:00","key":"7839389eb86788e738bb71a9b292c98610ef0acbfc129f106d964b70ebc7be7f","person":"Ben","signature":"7847bdca33d98f8a68750f153e2969c0754dfff8297fcbf8a004fbe2e40f11bfb7459fe926ce0a2ac1a92c6d8b04a810ba87cdf917002129ad00397bb708d302","subject":"cdda0cc6c84d36075da05bda747ce51c271f69aa40377919556b9d4cd5c0226f"},"format":1,"kind":"approved"}	32e1f68e55b3000a63c37c7efa8a18b6ca845ec2c1f99044061ddc562a572db4
5	32e1f68e55b3000a63c37c7efa8a18b6ca845ec2c1f99044061ddc562a572db4	{"at":"2026-01-15T09:00:09+00:00","content":{"account":"harbour","cap":"2999991/500000","closes":"","currency":"rho","delta":"1/10000000000","identity":{"protect":"persons","relation":"add-remove","singles":""},"period":"once","to_publish":1,"to_spend":0},"format":1,"kind":"granted"}	0d583fbe58d6554ce33ee6749ebb104823e49217c33435dc36ae55a355e4839d
6	0d583fbe58d6554ce33ee6749ebb104823e49217c33435dc36ae55a355e4839d	{"at":"2026-01-15T09:00:10+00:00","content":{"account":"harbour","author":"root","code":"35c8a16927a8f369f01fc956f947eaf32a44df585bb08eac8ddb8017fcac160c","edition":"once","exact":0,"identity":{"protect":"persons","relation":"add-remove","singles":""},"key":"4431373ec0c7f19e090adad5deb0ed107abd57782758dd1eb8d561607ca2d4db","period":"once","plan":"a2580702570b1443645e2e9b361cba4c1e4c72da3497c9495b6c4497451e9b76","price":"999997/1000000","release":"harbour","run":"799e0583","spec":"49b1097c4ce3f4a4edd94dc1cebd13147e819a6c14faf6d3aa9d1af245475eb1","started_by":"root","to_publish":0,"to_spend":0},"format":1,"kind":"reserved"}	47c8fd368328bd1b45c9147130ed6178d1752d4e245fa53fc829d83b85eb0f3e
7	47c8fd368328bd1b45c9147130ed6178d1752d4e245fa53fc829d83b85eb0f3e	{"at":"2026-01-15T09:00:11+00:00","content":{"dataset":"c102bc2cc87ad40259937747b52200b59877d540ab0f4146f1af408be0228d10","run":"799e0583"},"format":1,"kind":"identified"}	979247cb237c2bf196743ce0703832919ea711f292f83df211086b855bd28b67
8	979247cb237c2bf196743ce0703832919ea711f292f83df211086b855bd28b67	{"at":"2026-01-15T09:00:12+00:00","content":{"charges":[{"attributes":["persons.sex"],"level":"land","mechanism":{"name":"discrete_gaussian","parameters":{"variance":"62500/15251"}},"query":"by_sex.count@land:land","relation":"add-remove","sensitivity":{"l1":"1","l2_squared":"1"},"shape":{"answers":1,"by":"own","kind":"counts","of":"records","one_cell":false},"unit":{"protects":"record"}},{"attributes":["persons.sex"],"level":"part","mechanism":{"name":"discrete_gaussian","parameters":{"variance":"125000/52831"}},"query":"by_sex.count@land:part","relation":"add-remove","sensitivity":{"l1":"1","l2_squared":"1"},"shape":{"answers":1,"by":"own","kind":"counts","of":"records","one_cell":false},"unit":{"protects":"record"}},{"attributes":["persons.sex","persons.trade"],"level":"land","mechanism":{"name":"discrete_gaussian","parameters":{"variance":"31250/15251"}},"query":"by_trade.count@land:land","relation":"add-remove","sensitivity":{"l1":"1","l2_squared":"1"},"shape":{"answers":1,"by":"own","kind":"counts","of":"records","one_cell":false},"unit":{"protects":"record"}},{"attributes":["persons.sex","persons.trade"],"level":"part","mechanism":{"name":"discrete_gaussian","parameters":{"variance":"500000/422649"}},"query":"by_trade.count@land:part","relation":"add-remove","sensitivity":{"l1":"1","l2_squared":"1"},"shape":{"answers":1,"by":"own","kind":"counts","of":"records","one_cell":false},"unit":{"protects":"record"}}],"price":"999997/1000000","run":"799e0583"},"format":1,"kind":"charged"}	1250a27c626fcd6e26571e763e3a602d326423317711e3ec5cb85cbbecc23f2f
9	1250a27c626fcd6e26571e763e3a602d326423317711e3ec5cb85cbbecc23f2f	{"at":"2026-01-15T09:00:13+00:00","content":{"number":1,"run":"799e0583"},"format":1,"kind":"attempted"}	499dcca21d2807e1294b9853493e38599173f6ae47cb5745a7b9ad15871617f1
10	499dcca21d2807e1294b9853493e38599173f6ae47cb5745a7b9ad15871617f1	{"at":"2026-01-15T09:00:14+00:00","content":{"attempt":1,"run":"799e0583","sha256":"b45157ea1039507709fcf123c561e28e31950ea7ddb13ac2a3c4db33770f8838"},"format":1,"kind":"stored"}	675cb1f3feb6cfc952f635a75141dc0676d4a1a58229f10c1fbce46250da0a4a
11	675cb1f3feb6cfc952f635a75141dc0676d4a1a58229f10c1fbce46250da0a4a	{"at":"2026-01-15T09:00:15+00:00","content":{"act":"run 799e0583, to publish","subject":"a5444cf93a86b7e34b64a0541808189c1f342b875ca317cbb564cb1f446333db","would":{"act":"publish","run":"799e0583","stored":"b45157ea1039507709fcf123c561e28e31950ea7ddb13ac2a3c4db33770f8838","tables":"576006e4b044864789bd0af6df1fd4c8d47ab12f4d500bf72208464df58a4a8e","version":1}},"format":1,"kind":"proposed"}	a404a529a3b76766e6aed7d32986abf0c870d10d997abe231e3acdd54add4e62
12	a404a529a3b76766e6aed7d32986abf0c870d10d997abe231e3acdd54add4e62	{"at":"2026-01-15T09:00:17+00:00","content":{"act":"run 799e0583, to publish","expires":"2027-01-16T09:00:16+00:00","key":"729c35864d0616e35d9c5b7c2ef3dbfc68b7307dcae1c5293757e4350a6ab5e0","person":"Cleo","signature":"af6ccb9253ab919cb477c70f6ce3e8dbcc4480a7f3da11c1c4c794fe480677b386152c92d4d72b82c3bb26bdc75a389822e7965ac83d5d28cd91ed9c5ce6ee09","subject":"a5444cf93a86b7e34b64a0541808189c1f342b875ca317cbb564cb1f446333db"},"format":1,"kind":"approved"}	0248128173ab61b874e6ef8c3fbcae4ef5f10814b081e597a45642fb154aa69e
13	0248128173ab61b874e6ef8c3fbcae4ef5f10814b081e597a45642fb154aa69e	{"at":"2026-01-15T09:00:19+00:00","content":{"manifest":"b8e30c909cf9d89e4cdb228cf713126f22f78daeb928c9867992eaf808db1df6","run":"799e0583","tables":"576006e4b044864789bd0af6df1fd4c8d47ab12f4d500bf72208464df58a4a8e","version":1},"format":1,"kind":"published"}	5bbc5400a60bf71f6215540276b86d3cdef188a62f99efa52332a9e9b5dd489f
14	5bbc5400a60bf71f6215540276b86d3cdef188a62f99efa52332a9e9b5dd489f	{"at":"2026-01-15T09:00:20+00:00","content":{"account":"harbour","author":"Author","code":"code-1","edition":"edition-1","exact":0,"identity":{"protect":"persons","relation":"add-remove","singles":""},"key":"f18667083334aa790fd5c62595d3ff631714e1ed117c12eafbb97756b6145f9f","period":"once","plan":"plan-1","price":"1/4","release":"harbour-later","run":"paid","spec":"spec-1","started_by":"Starter","to_publish":0,"to_spend":0},"format":1,"kind":"reserved"}	e11f48a139d6fc14ae9e0292edea0d9f38a43f4b09e7e28e1d1692f65586fbfa
15	e11f48a139d6fc14ae9e0292edea0d9f38a43f4b09e7e28e1d1692f65586fbfa	{"at":"2026-01-15T09:00:21+00:00","content":{"dataset":"3b162476a09a067171df13b573a6d5bf3f0bcd943ac5dbbdaf26dca0d91b0023","run":"paid"},"format":1,"kind":"identified"}	d7871df0a4d4148b41a388c8fe7704fc09819092153a378773a03202898d4446
16	d7871df0a4d4148b41a388c8fe7704fc09819092153a378773a03202898d4446	{"at":"2026-01-15T09:00:22+00:00","content":{"charges":[{"attributes":[],"level":"whole","mechanism":{"name":"discrete_gaussian","parameters":{"variance":"2"}},"query":"people","relation":"add-remove","sensitivity":{"l1":"1","l2_squared":"1"},"shape":{"answers":1,"by":"own","kind":"counts","of":"records","one_cell":false},"unit":{"protects":"record"}}],"price":"1/4","run":"paid"},"format":1,"kind":"charged"}	ad8ca97a3c780efe0a26031f14423611b03232511bef01010eb14e4aac8da71b
17	ad8ca97a3c780efe0a26031f14423611b03232511bef01010eb14e4aac8da71b	{"at":"2026-01-15T09:00:23+00:00","content":{"number":1,"run":"paid"},"format":1,"kind":"attempted"}	986255c51786feb7fc2c619c4a6bd36c79d4fe519ab59fb0b049b287f5b7f623
18	986255c51786feb7fc2c619c4a6bd36c79d4fe519ab59fb0b049b287f5b7f623	{"at":"2026-01-15T09:00:24+00:00","content":{"account":"harbour","author":"Author","code":"code-1","edition":"edition-2","exact":0,"identity":{"protect":"persons","relation":"add-remove","singles":""},"key":"a791363c7b3a1f3c32e6221855c7cfa46612a84a3d5e9950c595b84b01d2b294","period":"once","plan":"plan-1","price":"1/4","release":"harbour-later","run":"held","spec":"spec-1","started_by":"Starter","to_publish":0,"to_spend":0},"format":1,"kind":"reserved"}	882f709e009cc643b083a3acbedba3b765269a0d8215f73e941eb02128f5975a
19	882f709e009cc643b083a3acbedba3b765269a0d8215f73e941eb02128f5975a	{"at":"2026-01-15T09:00:25+00:00","content":{"hash":"882f709e009cc643b083a3acbedba3b765269a0d8215f73e941eb02128f5975a","seq":18,"where":"the office's website"},"format":1,"kind":"anchored"}	246ee00f3e29660cedd2659bd3f8be47705f358bd5fbf3ea74fcfacf07595bc2
\.


--
-- Data for Name: layout; Type: TABLE DATA; Schema: margrave; Owner: -
--

COPY margrave.layout (version) FROM stdin;
1
\.


--
-- Name: confidential confidential_pkey; Type: CONSTRAINT; Schema: margrave; Owner: -
--

ALTER TABLE ONLY margrave.confidential
    ADD CONSTRAINT confidential_pkey PRIMARY KEY (name);


--
-- Name: entries entries_hash_key; Type: CONSTRAINT; Schema: margrave; Owner: -
--

ALTER TABLE ONLY margrave.entries
    ADD CONSTRAINT entries_hash_key UNIQUE (hash);


--
-- Name: entries entries_pkey; Type: CONSTRAINT; Schema: margrave; Owner: -
--

ALTER TABLE ONLY margrave.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (seq);


--
-- Name: entries entries_stay; Type: TRIGGER; Schema: margrave; Owner: -
--

CREATE TRIGGER entries_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON margrave.entries FOR EACH STATEMENT EXECUTE FUNCTION margrave.stay();


--
-- Name: confidential secrets_stay; Type: TRIGGER; Schema: margrave; Owner: -
--

CREATE TRIGGER secrets_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON margrave.confidential FOR EACH STATEMENT EXECUTE FUNCTION margrave.stay();


--
-- PostgreSQL database dump complete
--


